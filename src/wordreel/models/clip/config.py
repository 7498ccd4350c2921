"""The configurations of video-text models on CLIP's towers, as plain frozen data without torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wordreel.errors import NextStep, WeightsError
from wordreel.models.config import Mode
from wordreel.nets.clip.config import (
    BackboneConfig,
    ImageTransform,
    TextTowerConfig,
    TokenizerConfig,
    VisionTowerConfig,
)

Head = Literal["mean", "lstm", "transformer", "tight"]

VIT_B_32 = BackboneConfig("clip-vit-b-32")
VIT_B_16 = BackboneConfig("clip-vit-b-16", vision=VisionTowerConfig(patch=16))


def small_clip(
    name: str = "clip-small",
    size: int = 112,
    patch: int = 16,
    width: int = 256,
    depth: int = 6,
    dim: int = 256,
    vocabulary: int = 49408,
    length: int = 32,
) -> BackboneConfig:
    """A CLIP to train from scratch: heads of 64 numbers, both towers of one width and depth.

    >>> small_clip().vision.heads
    4
    """
    heads = max(1, width // 64)
    return BackboneConfig(
        name,
        dim=dim,
        vision=VisionTowerConfig(
            size=size, patch=patch, width=width, depth=depth, heads=heads, mlp=4 * width
        ),
        text=TextTowerConfig(vocabulary, length, width, depth, heads, 4 * width),
        transform=ImageTransform(size=size),
        tokenizer=TokenizerConfig(length=length),
    )


@dataclass(frozen=True)
class Clip4ClipConfig:
    """CLIP4Clip (arXiv 2104.08860): a CLIP, and a head over the embeddings of a video's frames.

    `patch` "3d" projects patches of three neighbouring frames. The heads "transformer" and "tight" have
    `layers` blocks of the text tower's size. `max_frames` and `max_words` (with both end tokens) are what it
    is trained and used with. In mode "released" the heads with attention mix up the frame masks of a batch,
    as the published code does, which changes the embeddings of videos with fewer frames than others.
    """

    backbone: BackboneConfig = VIT_B_32
    head: Head = "mean"
    patch: Literal["2d", "3d"] = "2d"
    layers: int = 4
    dropout: float = 0.1  # of the tight head's inputs
    max_frames: int = 12
    max_words: int = 32
    mode: Mode = "paper"
    kind: Literal["clip4clip"] = "clip4clip"

    def __post_init__(self) -> None:
        length = self.backbone.text.length
        if not 0 < self.max_words <= length:
            raise ValueError(f"max_words is at most {length}, the text tower's length, not {self.max_words}")
        room = length - (1 if self.head == "tight" else 0)
        if self.max_frames < 1 or (self.head != "mean" and self.max_frames > room):
            raise ValueError(f"max_frames is at least 1 and at most {room}, not {self.max_frames}")
        if self.head in ("transformer", "tight") and self.layers < 1:
            raise ValueError(f"the {self.head} head needs at least one layer")


VideoTextConfig = Clip4ClipConfig
KINDS: dict[str, type[VideoTextConfig]] = {"clip4clip": Clip4ClipConfig}


def to_json(config: VideoTextConfig) -> dict[str, Any]:
    """Plain values that `from_json` makes the same configuration of."""
    return dataclasses.asdict(config)


def from_json(value: Mapping[str, Any]) -> VideoTextConfig:
    """
    >>> from_json(to_json(Clip4ClipConfig(head="lstm"))) == Clip4ClipConfig(head="lstm")
    True
    """
    try:
        return KINDS[value["kind"]](**{**value, "backbone": BackboneConfig.from_json(value["backbone"])})
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(
            f"the model's description cannot be read ({error}); it may be of a newer wordreel",
            NextStep("update wordreel, or train the model again"),
        ) from None
