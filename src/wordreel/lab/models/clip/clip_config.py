"""The sizes of a CLIP whose towers are trained, as plain frozen data without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from wordreel.backbones.config import ImageTransform

Activation = Literal["quick_gelu", "gelu", "gelu_tanh"]
Data = TypeVar("Data")


@dataclass(frozen=True)
class VisionTowerConfig:
    """A vision transformer whose class token becomes the picture's embedding."""

    size: int = 224
    patch: int = 32
    width: int = 768
    depth: int = 12
    heads: int = 12
    mlp: int = 3072
    activation: Activation = "quick_gelu"
    epsilon: float = 1e-5


@dataclass(frozen=True)
class TextTowerConfig:
    """A causal transformer whose first end-of-text token, the largest id, becomes the text's embedding."""

    vocabulary: int = 49408
    length: int = 77
    width: int = 512
    depth: int = 12
    heads: int = 8
    mlp: int = 2048
    activation: Activation = "quick_gelu"
    epsilon: float = 1e-5


@dataclass(frozen=True)
class ClipConfig:
    """A CLIP with a vision transformer (Radford et al. 2021), without its weights.

    >>> ClipConfig.from_json({"name": "clip-vit-b-32", "vision": {"patch": 32}}).vision.patch
    32
    """

    name: str
    dim: int = 512
    vision: VisionTowerConfig = VisionTowerConfig()
    text: TextTowerConfig = TextTowerConfig()
    transform: ImageTransform = field(default_factory=ImageTransform)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ClipConfig:
        """Return the configuration in plain values; what other versions wrote beside it is ignored."""
        transform = dict(values.get("transform", {}))
        transform |= {key: tuple(transform[key]) for key in ("mean", "std") if key in transform}
        return cls(
            values["name"],
            values.get("dim", cls.dim),
            _known(VisionTowerConfig, values.get("vision", {})),
            _known(TextTowerConfig, values.get("text", {})),
            _known(ImageTransform, transform),
        )


def _known(kind: type[Data], values: Mapping[str, Any]) -> Data:
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in values.items() if key in names})
