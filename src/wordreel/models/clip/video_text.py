"""What every video-text model that reads frames offers: two encoders, and logits between their outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class FrameBatch(NamedTuple):
    """Normalised `pixels [b, frames, 3, size, size]`, and which frames are real: `mask [b, frames]` bool."""

    pixels: Tensor
    mask: Tensor


class CaptionBatch(NamedTuple):
    """Token `ids [q, tokens]` int64 with both end tokens, padded with 0, and `mask [q, tokens]` bool."""

    ids: Tensor
    mask: Tensor


Encoded = tuple[Tensor, ...]
"""What an encoder makes of a batch: tensors with the batch first, so that batches can be concatenated and
gathered over processes."""


class VideoTextModel(nn.Module, ABC):
    """Neither encoder sees the other's input, and in evaluation no item depends on its neighbours."""

    @abstractmethod
    def encode_videos(self, frames: FrameBatch) -> Encoded:
        """Whatever `logits` needs of each video."""

    @abstractmethod
    def encode_captions(self, captions: CaptionBatch) -> Encoded:
        """Whatever `logits` needs of each caption."""

    @abstractmethod
    def logits(self, captions: Encoded, videos: Encoded) -> Tensor:
        """`[q, b]`, multiplied by the logit scale as published."""

    def training_logits(self, captions: Encoded, videos: Encoded) -> tuple[tuple[float, Tensor], ...]:
        """(weight, `[q, b]`): the loss is the weighted sum of these matrices' losses. One, unless the paper
        has a loss for each of several similarities, as CLIP2Video has."""
        return ((1.0, self.logits(captions, videos)),)

    def forward(self, frames: FrameBatch, captions: CaptionBatch) -> Tensor:
        """`[q, b]`"""
        return self.logits(self.encode_captions(captions), self.encode_videos(frames))
