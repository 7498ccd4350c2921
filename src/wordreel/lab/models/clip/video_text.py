"""What every video-text model that reads frames offers: two encoders, and logits between their outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from wordreel.errors import WeightsError
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.clip.towers import ClipTowers


class FrameBatch(NamedTuple):
    """Normalised `pixels [b, frames, 3, size, size]`, and which frames are real: `mask [b, frames]` bool."""

    pixels: Tensor
    mask: Tensor


class CaptionBatch(NamedTuple):
    """Token `ids [q, tokens]` int64 with both end tokens, padded with 0, and `mask [q, tokens]` bool."""

    ids: Tensor
    mask: Tensor


SPREAD = 0.02  # of new weights that are not taken from CLIP

Encoded = tuple[Tensor, ...]
"""What an encoder makes of a batch: tensors with the batch first, so that batches can be concatenated and
gathered over processes."""


class VideoTextModel(nn.Module, ABC):
    """Neither encoder sees the other's input, and in evaluation no item depends on its neighbours.

    `clip` holds the towers; parameters outside of it are new and train at a higher learning rate.
    """

    config: VideoTextConfig
    clip: ClipTowers

    @abstractmethod
    def encode_videos(self, frames: FrameBatch) -> Encoded:
        """Return whatever `logits` needs of each video."""

    @abstractmethod
    def encode_captions(self, captions: CaptionBatch) -> Encoded:
        """Return whatever `logits` needs of each caption."""

    @abstractmethod
    def logits(self, captions: Encoded, videos: Encoded) -> Tensor:
        """Compute the logits `[q, b]`, multiplied by the logit scale as published."""

    def training_logits(self, captions: Encoded, videos: Encoded) -> tuple[tuple[float, Tensor], ...]:
        """Return (weight, `[q, b]`): the loss is the weighted sum of these matrices' losses.

        One, unless the paper has a loss for each of several similarities, as CLIP2Video has.
        """
        return ((1.0, self.logits(captions, videos)),)

    def forward(self, frames: FrameBatch, captions: CaptionBatch) -> Tensor:
        """Return the logits `[q, b]` of every caption with every video."""
        return self.logits(self.encode_captions(captions), self.encode_videos(frames))

    def init_new_layers(self) -> None:
        """Draw the weights outside of the towers, as published.

        These are N(0, 0.02²) for matrices and tables, and 0 for biases.
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding) and not name.startswith("clip."):
                nn.init.normal_(module.weight, std=SPREAD)
            if isinstance(module, nn.Linear) and module.bias is not None and not name.startswith("clip."):
                nn.init.zeros_(module.bias)

    def init_head(self) -> None:
        """Set whatever starts as a copy of CLIP's weights, once they are loaded; by default nothing."""

    def load_clip(self, state: Mapping[str, Tensor]) -> None:
        """Start from the weights of a CLIP, by OpenAI's names, and initialise the head from them."""
        own = self.clip.state_dict()
        missing = sorted(own.keys() - state.keys() - {"visual.conv2.weight"})
        other = sorted(key for key in own.keys() & state.keys() if own[key].shape != state[key].shape)
        if missing or other:
            what = f"it has no {missing[0]}" if missing else f"{other[0]} has another shape"
            raise WeightsError(f"the checkpoint is not of {self.clip.config.name}: {what}")
        with torch.no_grad():
            for key in own.keys() & state.keys():
                own[key].copy_(state[key])
        if "visual.conv2.weight" not in state:
            self.clip.visual.init_patch_3d()
        self.init_head()


def cosines(texts: Tensor, videos: Tensor) -> Tensor:
    """Compute the cosines `[q, b]` of unit vectors, in float32 under autocast too.

    A logit of 30 has steps of 1/8 in bfloat16.
    """
    with torch.autocast(texts.device.type, enabled=False):
        return texts.float() @ videos.float().T


def mean_pool(frames: Tensor, mask: Tensor) -> Tensor:
    """Return unit vectors `[b, dim]`: the mean of the real frames at unit length, at unit length again.

    `frames [b, n, dim]`, `mask [b, n]` bool. A video without a real frame is a zero vector.
    """
    real = mask[:, :, None].to(frames.dtype)
    mean = (normalize(frames, dim=-1) * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return normalize(mean, dim=-1)
