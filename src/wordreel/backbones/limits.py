"""Bounds on what a configuration may claim, checked before anything of that size is allocated."""

from __future__ import annotations

import math

from wordreel.backbones.config import BackboneConfig
from wordreel.errors import WeightsError

MAX_WIDTH = 16_384
MAX_DEPTH = 128
MAX_LENGTH = 1024  # tokens of a text; attention masks grow with its square
MAX_PATCHES = 4096
MAX_SIZE = 2048
MAX_VOCABULARY = 1_000_000


def check_limits(config: BackboneConfig) -> None:
    """Raise if a size is larger than any published model's.

    >>> check_limits(BackboneConfig("clip-vit-b-32"))
    """
    vision, text, transform = config.vision, config.text, config.transform
    claims = [
        ("embeddings", config.dim, MAX_WIDTH),
        ("pictures", max(vision.size, transform.size), MAX_SIZE),
        ("patches", (vision.size // max(vision.patch, 1)) ** 2, MAX_PATCHES),
        ("texts", max(text.length, config.tokenizer.length), MAX_LENGTH),
        ("vocabulary", text.vocabulary, MAX_VOCABULARY),
    ]
    for tower in (vision, text):
        claims += [("blocks", tower.depth, MAX_DEPTH), ("layers", max(tower.width, tower.mlp), MAX_WIDTH)]
    for what, value, most in claims:
        if not 0 < value <= most:
            raise WeightsError(f"{config.name} claims {what} of the size {value}; at most {most} is read")
    if vision.size != transform.size:
        raise WeightsError(
            f"{config.name} makes pictures of {transform.size} pixels for a tower of {vision.size}"
        )
    if text.length != config.tokenizer.length:
        raise WeightsError(
            f"{config.name} makes texts of {config.tokenizer.length} tokens for a tower of {text.length}"
        )
    numbers = (*transform.mean, *transform.std, config.logit_scale, config.logit_bias)
    if not all(math.isfinite(value) for value in numbers) or min(transform.std) <= 0:
        raise WeightsError(f"{config.name} normalises pictures by numbers that are not usable")
