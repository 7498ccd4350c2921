"""Prepared pictures against open_clip's transform (torchvision) and transformers' image processors."""

import numpy as np
import pytest

from wordreel.backbones.config import ImageTransform
from wordreel.backbones.tower import transform_images

pytestmark = pytest.mark.slow
open_clip = pytest.importorskip("open_clip")
transformers = pytest.importorskip("transformers")

SIZES = [(224, 224), (360, 640), (240, 180), (97, 131), (50, 300), (1080, 1920), (225, 224)]
HALF = (0.5, 0.5, 0.5)
TRANSFORMS = {
    "clip": ImageTransform(),
    "siglip": ImageTransform(224, HALF, HALF, "squash"),
    "mobileclip": ImageTransform(256, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "crop", "bilinear"),
    "pe-core": ImageTransform(224, HALF, HALF, "squash", "bilinear"),
}


def picture(height, width):
    """Smooth shapes with noise and sharp edges."""
    rng = np.random.default_rng(height * width)
    rows, columns = np.mgrid[:height, :width]
    waves = np.stack([np.sin(rows / 9 + n) + np.cos(columns / (5 + n)) for n in range(3)], axis=-1)
    image = 127 + 50 * waves + rng.normal(0, 20, (height, width, 3))
    image[height // 3 : height // 2, width // 4 : width // 2] = (255, 0, 30)
    return np.clip(image, 0, 255).astype(np.uint8)


def worst_step(ours, theirs, transform):
    """The largest difference, in steps of a byte."""
    std = np.array(transform.std, np.float64)[:, None, None]
    return float(np.abs((ours.astype(np.float64) - theirs) * std * 255).max())


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_pixels_equal_open_clip(name, size):
    image_module = pytest.importorskip("PIL.Image")
    transform = TRANSFORMS[name]
    image = picture(*size)
    preprocess = open_clip.image_transform(
        transform.size,
        is_train=False,
        mean=transform.mean,
        std=transform.std,
        resize_mode="shortest" if transform.resize == "crop" else "squash",
        interpolation=transform.interpolation,
    )
    theirs = preprocess(image_module.fromarray(image)).numpy()
    assert worst_step(transform_images(image[None], transform)[0], theirs, transform) < 0.01


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["clip", "siglip"])
def test_pixels_equal_transformers(name, size):
    image_module = pytest.importorskip("PIL.Image")
    transform = TRANSFORMS[name]
    processor = {"clip": transformers.CLIPImageProcessorPil, "siglip": transformers.SiglipImageProcessorPil}[
        name
    ]()
    image = picture(*size)
    theirs = processor(image_module.fromarray(image), return_tensors="np")["pixel_values"][0]
    assert theirs.shape == (3, 224, 224)
    assert worst_step(transform_images(image[None], transform)[0], theirs, transform) < 0.01
