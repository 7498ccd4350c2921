import math

import pytest
import torch

from wordreel.lab.training.appearance.augment import as_pixels, augment
from wordreel.lab.training.appearance.settings import PictureSettings


def slow_augment(pixels, settings):
    """Pixel by pixel, with the same random numbers."""
    n, _, height, width = pixels.shape
    chance = torch.rand(8, n).tolist()
    out = torch.empty_like(pixels)
    for k in range(n):
        side = math.sqrt(settings.crop + (1 - settings.crop) * chance[0][k])
        stretch = math.exp((2 * chance[1][k] - 1) * settings.aspect)
        w, h = min(1.0, side * stretch), min(1.0, side / stretch)
        left, top = (2 * chance[2][k] - 1) * (1 - w), (2 * chance[3][k] - 1) * (1 - h)
        mirror = -1 if chance[4][k] < settings.flip else 1
        light, contrast, colour = (2 * chance[m][k] - 1 for m in (5, 6, 7))
        for i in range(height):
            for j in range(width):
                y = ((h * ((2 * i + 1) / height - 1) + top + 1) * height - 1) / 2
                x = ((w * mirror * ((2 * j + 1) / width - 1) + left + 1) * width - 1) / 2
                value = torch.zeros(3)
                for row in (math.floor(y), math.floor(y) + 1):
                    for column in (math.floor(x), math.floor(x) + 1):
                        share = (1 - abs(y - row)) * (1 - abs(x - column))
                        here = pixels[k, :, min(max(row, 0), height - 1), min(max(column, 0), width - 1)]
                        value += share * here
                grey = value.mean()
                value = grey + (1 + settings.saturation * colour) * (value - grey)
                value = (1 + settings.contrast * contrast) * value + settings.brightness * light
                out[k, :, i, j] = value.clamp(-1, 1)
    return out


@pytest.mark.parametrize("settings", [PictureSettings(), PictureSettings(crop=0.3, aspect=0.6, flip=1.0)])
def test_augmentation_equals_the_slow_one(settings):
    pixels = torch.rand(5, 3, 6, 7) * 1.6 - 0.8
    torch.manual_seed(3)
    expected = slow_augment(pixels, settings)
    torch.manual_seed(3)
    torch.testing.assert_close(augment(pixels, settings), expected, atol=1e-5, rtol=1e-5)


def test_without_changes_a_picture_stays():
    pixels = as_pixels(torch.randint(0, 256, (2, 5, 5, 3), dtype=torch.uint8)).clamp(-1, 1)
    still = PictureSettings(crop=1.0, aspect=0.0, flip=0.0, brightness=0.0, contrast=0.0, saturation=0.0)
    torch.testing.assert_close(augment(pixels, still), pixels, atol=1e-5, rtol=1e-5)
    mirrored = PictureSettings(crop=1.0, aspect=0.0, flip=1.0, brightness=0.0, contrast=0.0, saturation=0.0)
    torch.testing.assert_close(augment(pixels, mirrored), pixels.flip(3), atol=1e-5, rtol=1e-5)


def test_settings_out_of_range_are_refused():
    for wrong in ({"crop": 0.0}, {"flip": 1.1}, {"frames": 0}, {"hold_out": 1.0}, {"saturation": 1.0}):
        with pytest.raises(ValueError, match=r"crop|frames|saturation"):
            PictureSettings(**wrong)
