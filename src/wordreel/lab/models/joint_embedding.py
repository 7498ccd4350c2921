"""What every trainable joint embedding offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor, nn

from wordreel.lab.models.batch import QueryEmbeddings, TokenBatch, VideoEmbeddings, VideoFeatures, similarity
from wordreel.lab.models.config import ModelConfig


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
        """Features by expert name to `[b, rows, dim]`; an expert that is not in the mapping is missing."""

    @abstractmethod
    def embed_queries(self, text: TokenBatch) -> QueryEmbeddings:
        """Captions to `[q, rows, dim]` and weights `[q, rows]`."""

    def fit_features(self, rows: Mapping[str, Tensor]) -> None:
        """Set what the training set's features determine, from all rows `[n, d]` by expert.

        By default nothing. Called once, before the first step of a training that starts from fresh weights.
        """

    def forward(self, video: VideoFeatures, text: TokenBatch) -> tuple[VideoEmbeddings, QueryEmbeddings]:
        return self.embed_videos(video), self.embed_queries(text)

    def similarities(self, video: VideoFeatures, text: TokenBatch) -> Tensor:
        """`[q, b]`"""
        videos, queries = self(video, text)
        return similarity(queries, videos)
