"""Pictures as the network reads them, and their augmentation, on the device."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from wordreel.lab.training.appearance.settings import PictureSettings


def as_pixels(images: Tensor) -> Tensor:
    """`[n, h, w, 3]` uint8 RGB to `[n, 3, h, w]` float32, about −1 to 1."""
    return (images.permute(0, 3, 1, 2).float() - 127) / 128


def augment(pixels: Tensor, settings: PictureSettings) -> Tensor:
    """A random part of each picture at the size it had, perhaps mirrored, in other light and colours.

    Each picture x becomes c · (grey + s · (x − grey)) + b, with grey the mean of its channels.
    """
    n, device = len(pixels), pixels.device
    chance = torch.rand(8, n, device=device)
    side = (settings.crop + (1 - settings.crop) * chance[0]).sqrt()
    stretch = ((2 * chance[1] - 1) * settings.aspect).exp()
    width, height = (side * stretch).clamp(max=1), (side / stretch).clamp(max=1)
    left, top = (2 * chance[2] - 1) * (1 - width), (2 * chance[3] - 1) * (1 - height)
    mirror = torch.where(chance[4] < settings.flip, -1.0, 1.0)
    zeros = torch.zeros_like(width)
    rows = [torch.stack([width * mirror, zeros, left], 1), torch.stack([zeros, height, top], 1)]
    with torch.autocast(device.type, enabled=False):
        grid = affine_grid(torch.stack(rows, 1), list(pixels.shape), align_corners=False)
        pixels = grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)
    light, contrast, colour = (2 * chance[5:, :, None, None, None] - 1).unbind()
    grey = pixels.mean(1, keepdim=True)
    pixels = grey + (1 + settings.saturation * colour) * (pixels - grey)
    return ((1 + settings.contrast * contrast) * pixels + settings.brightness * light).clamp(-1, 1)
