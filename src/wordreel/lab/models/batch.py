"""What goes into a trainable joint embedding and what comes out, and what each of them offers.

Batches are named tuples of tensors: torch moves, pins, splits and compiles these without extra code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wordreel.lab.models.config import ModelConfig


class ExpertFeatures(NamedTuple):
    """One expert's rows for a batch of videos. What stands in padding is never looked at.

    A video without this expert has no real row. `times` are the rows' middles in seconds from the clip's
    start, NaN where unknown; `pooled` is the maximum (or mean) over *all* rows where `values` holds some.
    """

    values: Tensor  # [b, n, d]
    mask: Tensor  # [b, n] bool, True for real rows
    times: Tensor | None = None  # [b, n]
    pooled: Tensor | None = None  # [b, d]

    @property
    def available(self) -> Tensor:
        """Return which videos have a real row, `[b]` bool."""
        return self.mask.any(dim=1)


class TokenBatch(NamedTuple):
    """A batch of captions: word vectors `[q, t, d]` or token numbers `[q, t]`, and which tokens are real."""

    tokens: Tensor
    mask: Tensor  # [q, t] bool


class VideoEmbeddings(NamedTuple):
    """Embedded videos; rows of unavailable experts are zero."""

    vectors: Tensor  # [b, experts, dim]
    available: Tensor  # [b, experts] bool


class QueryEmbeddings(NamedTuple):
    """Embedded captions, one vector and one weight per expert."""

    vectors: Tensor  # [q, experts, dim]
    weights: Tensor  # [q, experts]


VideoFeatures = Mapping[str, ExpertFeatures]


def similarity(queries: QueryEmbeddings, videos: VideoEmbeddings) -> Tensor:
    """Compute s(q, v) = Σₘ wₘ aₘ ⟨qₘ, vₘ⟩ / Σₘ wₘ aₘ as `[q, v]`.

    This is one matrix product divided by another.

    The same numbers as `wordreel.models.similarity.mixture`. `a` is the video's alone, so a video's
    availability can change only its own column; where nothing is both wanted and available, s is 0.
    """
    available = videos.available.to(queries.weights.dtype)
    weighted = (queries.vectors * queries.weights[:, :, None]).flatten(1)
    present = (videos.vectors * available[:, :, None]).flatten(1)
    bottom = queries.weights @ available.T
    some = bottom > 0
    return torch.where(some, weighted @ present.T / torch.where(some, bottom, 1), 0)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Average `[b, n, d]` to `[b, d]`, 0 where nothing is real."""
    real = mask[:, :, None]
    total = torch.where(real, values, 0).sum(dim=1)
    return total / real.sum(dim=1).clamp(min=1).to(values.dtype)


def masked_max(values: Tensor, mask: Tensor) -> Tensor:
    """Reduce `[b, n, d]` to the maximum `[b, d]`, 0 where nothing is real."""
    real = mask[:, :, None]
    top = torch.where(real, values, -torch.inf).amax(dim=1)
    return torch.where(mask.any(dim=1)[:, None], top, 0)


def unit(x: Tensor) -> Tensor:
    """Return x / ‖x‖ over the last dimension; zero stays zero."""
    return torch.nn.functional.normalize(x, dim=-1)


class JointEmbedding(nn.Module, ABC):
    """Two towers that meet in `[experts, dim]`.

    `rows` names the rows of every embedding, in order (the experts, except for models that join them into
    one); `dim` is their length. Neither tower sees the other, and in evaluation no item depends on its
    neighbours.
    """

    config: ModelConfig
    rows: tuple[str, ...]
    dim: int

    @abstractmethod
    def embed_videos(self, video: VideoFeatures) -> VideoEmbeddings:
        """Embed features by expert name as `[b, rows, dim]`.

        An expert that is not in the mapping is missing.
        """

    @abstractmethod
    def embed_queries(self, text: TokenBatch) -> QueryEmbeddings:
        """Embed captions as `[q, rows, dim]` with weights `[q, rows]`."""

    def forward(self, video: VideoFeatures, text: TokenBatch) -> tuple[VideoEmbeddings, QueryEmbeddings]:
        return self.embed_videos(video), self.embed_queries(text)

    def similarities(self, video: VideoFeatures, text: TokenBatch) -> Tensor:
        """Return the similarity of every caption with every video, `[q, b]`."""
        videos, queries = self(video, text)
        return similarity(queries, videos)
