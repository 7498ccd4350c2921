"""What a recipe says about frames and the weights it starts from, as plain frozen data: no torch."""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.lab.training.video.frame_rules import Position


@dataclass(frozen=True)
class FrameSettings:
    """Which frames are read, and how they are loaded. The model says how many at most (`model.max_frames`).

    The model also says how many frames a second (`model.frame_rate`); of more than the most, `position` says
    which are read. Augmentation crops
    a random part of all frames of a video (`crop` is the smallest share of their area; 1: no augmentation)
    and mirrors them with chance `flip`. `workers` decode (0: one per core), `ahead` batches are loaded in
    advance, and `cache_gib` of memory hold decoded videos for the next epochs.
    """

    position: Position = "uniform"
    crop: float = 1.0
    flip: float = 0.0
    workers: int = 0
    ahead: int = 3
    cache_gib: float = 0.0

    def __post_init__(self) -> None:
        if self.workers < 0 or self.ahead < 1 or self.cache_gib < 0:
            raise ValueError("ahead must be at least 1, workers and cache_gib not below 0")
        if not 0 < self.crop <= 1 or not 0 <= self.flip <= 1:
            raise ValueError("crop is a share above 0 and at most 1, flip a chance")


@dataclass(frozen=True)
class VideoStartSettings:
    """The weights that training starts from.

    `backbone` is a CLIP (a Hugging Face folder, or a checkpoint file), `model` a model to fine-tune (a
    training's folder, or a published checkpoint); `scratch` allows neither. `frozen_layers` blocks of both
    towers stay as they are, and with them the embeddings and the patch projection (-1: everything trains); a
    3-D patch always trains. With `checkpointing` the backward pass computes activations again instead of
    storing them.
    """

    backbone: str = ""
    model: str = ""
    scratch: bool = False
    frozen_layers: int = -1
    checkpointing: bool = False

    def __post_init__(self) -> None:
        if self.frozen_layers < -1:
            raise ValueError("frozen_layers is at least -1")
