"""What a recipe says about pictures and about fine-tuning, as plain frozen data: no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PictureSettings:
    """Which pictures are read, and how they are augmented.

    A video is `frames` of its frames. A `hold_out` share of each source's items is for validation, where no
    validation data is named. Augmentation crops a random part of a picture (`crop` is the smallest share of
    its area, `aspect` the largest logarithm of its stretch), mirrors it with chance `flip`, and changes
    brightness, contrast and saturation by at most these shares.
    """

    frames: int = 6
    hold_out: float = 0.05
    crop: float = 0.5
    aspect: float = 0.15
    flip: float = 0.5
    brightness: float = 0.25
    contrast: float = 0.25
    saturation: float = 0.3

    def __post_init__(self) -> None:
        if self.frames < 1 or not 0 <= self.hold_out < 1:
            raise ValueError("frames is at least 1, hold_out a share below 1")
        if not 0 < self.crop <= 1 or not 0 <= self.flip <= 1 or self.aspect < 0:
            raise ValueError("crop is a share above 0 and at most 1, flip a chance, aspect not below 0")
        if not all(0 <= one < 1 for one in (self.brightness, self.contrast, self.saturation)):
            raise ValueError("brightness, contrast and saturation are shares below 1")


@dataclass(frozen=True)
class FineTuneSettings:
    """`class_weight` is that of the KL divergence from the network's former class probabilities.

    `average` is the decay of the moving average of the weights, which is what is saved.
    """

    class_weight: float = 1.0
    average: float = 0.995

    def __post_init__(self) -> None:
        if self.class_weight < 0 or not 0 <= self.average < 1:
            raise ValueError("class_weight is not below 0, average a decay below 1")
