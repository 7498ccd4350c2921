"""The sizes of the appearance network and of the heads that train it: no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from wordreel.errors import WeightsError
from wordreel.runtime.nets.efficientnet_lite import CLASSES, FEATURES, HALVING, LITE2, STEM


@dataclass(frozen=True)
class PictureTextConfig:
    """Sizes: `size` is the pictures' side in pixels, `sentence` the sentence vectors', `hidden` the MLP's.

    `stages`, `stem`, `features`, `classes` and `halving` are those of the network.
    """

    size: int = 224
    sentence: int = 384
    hidden: int = 768
    dropout: float = 0.2
    text_dropout: float = 0.1
    stages: tuple[tuple[int, int, int, int], ...] = LITE2
    stem: int = STEM
    features: int = FEATURES
    classes: int = CLASSES
    halving: tuple[int, ...] = tuple(sorted(HALVING))
    kind: Literal["appearance"] = "appearance"

    def __post_init__(self) -> None:
        if self.size < 1 or self.hidden < 1:
            raise ValueError("size and hidden are at least 1")
        if not 0 <= self.dropout < 1 or not 0 <= self.text_dropout < 1:
            raise ValueError("dropout and text_dropout are chances below 1")


def config_from_json(values: Mapping[str, Any]) -> PictureTextConfig:
    """A configuration from the description of a model."""
    if values.get("kind") != "appearance":
        raise WeightsError(f"this is a {values.get('kind')} model, not an appearance network")
    known = {one.name for one in fields(PictureTextConfig)}
    plain = {name: value for name, value in values.items() if name in known}
    stages = tuple(tuple(stage) for stage in plain.pop("stages"))
    return PictureTextConfig(**{**plain, "stages": stages, "halving": tuple(plain["halving"])})


def parameter_counts(config: PictureTextConfig) -> dict[str, int]:
    """Trained parameters by part.

    >>> parameter_counts(PictureTextConfig())["network"]
    6092072
    """
    count, width = 3 * 9 * config.stem + 2 * config.stem, config.stem
    for blocks, kernel, out, expansion in config.stages:
        for _ in range(blocks):
            inner = width * expansion
            if expansion > 1:
                count += width * inner + 2 * inner
            count += kernel * kernel * inner + 2 * inner + inner * out + 2 * out
            width = out
    count += width * config.features + 2 * config.features + (config.features + 1) * config.classes
    dim, hidden = config.sentence, config.hidden
    return {
        "network": count,
        "picture head": (config.features + 1) * dim,
        "text head": (dim + 1) * hidden + (hidden + 1) * dim,
    }
