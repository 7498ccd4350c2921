"""Decoded frames to a model's input, on the device: augment, normalise, hide what is not there."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from wordreel.backbones.config import ImageTransform
from wordreel.lab.models.clip.video_text import FrameBatch
from wordreel.lab.training.settings import FrameSettings

ASPECT = math.log(4 / 3)  # crops are at most this much wider or higher


def normalise(frames: Tensor, counts: Tensor, transform: ImageTransform) -> FrameBatch:
    """`frames [b, n, h, w, 3]` uint8, of which the first `counts [b]` are real, as the towers read them.

    Frames that are not there are zeros, as published. A video of no frame is one black one.
    """
    device = frames.device
    mean, std = (torch.tensor(v, device=device)[:, None, None] for v in (transform.mean, transform.std))
    places = torch.arange(frames.shape[1], device=device)
    mask = places < counts.clamp(min=1)[:, None]
    readable = places < counts[:, None]
    pixels = (frames.permute(0, 1, 4, 2, 3).float() / 255 - mean) / std
    return FrameBatch(pixels * readable[:, :, None, None, None], mask)


def augment(frames: FrameBatch, settings: FrameSettings, size: int) -> FrameBatch:
    """Return a random part of each video, the same in all its frames, at `size` pixels.

    It is perhaps mirrored.
    """
    b, n = frames.pixels.shape[:2]
    device = frames.pixels.device
    chance = torch.rand(5, b, device=device)
    area = settings.crop + (1 - settings.crop) * chance[0]
    aspect = ((2 * chance[1] - 1) * ASPECT).exp().sqrt()
    width, height = ((area.sqrt() * a).clamp(max=1.0) for a in (aspect, 1 / aspect))
    left, top = (1 - width) * (2 * chance[2] - 1), (1 - height) * (2 * chance[3] - 1)
    mirror = torch.where(chance[4] < settings.flip, -1.0, 1.0)
    zeros = torch.zeros_like(width)
    rows = [torch.stack([width * mirror, zeros, left], 1), torch.stack([zeros, height, top], 1)]
    theta = torch.stack(rows, 1).repeat_interleave(n, 0)
    with torch.autocast(device.type, enabled=False):
        grid = affine_grid(theta, [b * n, 3, size, size], align_corners=False)
        pixels = grid_sample(frames.pixels.flatten(0, 1), grid, padding_mode="border", align_corners=False)
    return FrameBatch(pixels.view(b, n, 3, size, size), frames.mask)
