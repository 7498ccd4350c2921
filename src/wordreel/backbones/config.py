"""What there is to know about a joint picture-text model beside its two networks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Family = Literal["clip", "siglip"]
"""Trained by a softmax over a batch, or by a sigmoid of each pair."""
Interpolation = Literal["bicubic", "bilinear"]
Triple = tuple[float, float, float]
TABLE = Path(__file__).parent / "data" / "named_backbones.json"


@dataclass(frozen=True)
class ImageTransform:
    """Pixels to the network's input: resize, crop, `(value / 255 − mean) / std`.

    "crop" resizes the shorter side and crops the centre; "squash" resizes both sides to the square.
    """

    size: int = 224
    mean: Triple = (0.48145466, 0.4578275, 0.40821073)
    std: Triple = (0.26862954, 0.26130258, 0.27577711)
    resize: Literal["crop", "squash"] = "crop"
    interpolation: Interpolation = "bicubic"


@dataclass(frozen=True)
class TextSettings:
    """Texts are cut to `length` tokens and filled up with `padding`, unless they may be `shorter`.

    With `canonicalize` punctuation goes and letters become small before the tokenizer sees them.
    """

    length: int = 77
    padding: int = 0
    shorter: bool = False
    canonicalize: bool = False


@dataclass(frozen=True)
class HeadConfig:
    """A fine-tuned model makes one vector of `dim` numbers of a clip's frames, at most `frames` of them.

    Frames are taken at `rate` a second. Texts have `dim` numbers too.
    """

    dim: int
    frames: int = 12
    rate: float = 1.0


@dataclass(frozen=True)
class BackboneConfig:
    """A joint picture-text model without its networks. Without a `head`, a clip is the mean of its frames.

    >>> BackboneConfig.from_json(BackboneConfig("clip-vit-b-32").to_json()).transform.size
    224
    """

    name: str
    family: Family = "clip"
    dim: int = 512
    transform: ImageTransform = ImageTransform()
    text: TextSettings = TextSettings()
    head: HeadConfig | None = None

    @property
    def vector_dim(self) -> int:
        """Length of the vectors of clips and texts; a frame's has `dim` numbers."""
        return self.dim if self.head is None else self.head.dim

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> BackboneConfig:
        """Return the configuration that `to_json` wrote."""
        transform = dict(values["transform"])
        transform |= {key: tuple(transform[key]) for key in ("mean", "std")}
        return cls(
            values["name"],
            values["family"],
            values["dim"],
            ImageTransform(**transform),
            TextSettings(**values["text"]),
            None if values["head"] is None else HeadConfig(**values["head"]),
        )


Speed = Literal["fast", "medium", "slow"]


@dataclass(frozen=True)
class NamedBackbone:
    """Describe one model that can be downloaded by its name.

    `megabytes` are to download; `speed` is that of the image tower on a CPU: with two cores, fast ones see
    more than ten frames a second, slow ones less than two.
    """

    name: str
    title: str
    hub: str
    megabytes: float
    licence: str
    speed: Speed
    revision: str = ""


NAMED: Mapping[str, NamedBackbone] = {
    entry["name"]: NamedBackbone(**entry) for entry in json.loads(TABLE.read_text(encoding="utf-8"))
}
"""CLIP-like models by name, as `data/named_backbones.json` lists them.

To add one, append an entry whose hub id you have verified. An empty `revision` is the newest commit; the
commit that was downloaded is recorded either way.
"""
