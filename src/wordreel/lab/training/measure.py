"""Retrieval metrics of a model on a validation set, on similarities computed in blocks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from wordreel.lab.models.batch import JointEmbedding, QueryEmbeddings, VideoEmbeddings, similarity
from wordreel.lab.training.data.caption_store import CaptionStore
from wordreel.lab.training.data.feature_store import FeatureStore
from wordreel.lab.training.optimisers import TrainingPrecision
from wordreel.retrieval.caption_ranks import Captions, text_to_video, video_to_text
from wordreel.retrieval.metrics import RetrievalMetrics
from wordreel.types import Float32, Int64

BATCH = {"cpu": 128, "cuda": 512}  # a GPU is not busy with less, and a CPU has no need of more
BLOCK = 1 << 26  # similarities on the device at once


@dataclass(frozen=True)
class ValidationMetrics:
    """Text to video and video to text, on the validation set."""

    t2v: RetrievalMetrics
    v2t: RetrievalMetrics

    def row(self) -> dict[str, float]:
        """Return flat figures for a log."""
        ways = {"t2v": asdict(self.t2v), "v2t": asdict(self.v2t)}
        return {
            f"{way}_{k}": v for way, figures in ways.items() for k, v in figures.items() if k != "queries"
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> ValidationMetrics:
        """Return the figures from their plain values."""
        return ValidationMetrics(RetrievalMetrics(**value["t2v"]), RetrievalMetrics(**value["v2t"]))

    def score(self, select: str) -> float:
        """Return the figure that chooses the best epoch: the geometric mean of R@1, R@5 and R@10."""
        if select == "v2t":
            return self.v2t.geometric_mean
        if select == "both":
            return (self.t2v.geometric_mean + self.v2t.geometric_mean) / 2
        return self.t2v.geometric_mean


@torch.inference_mode()
def embed_videos(
    module: JointEmbedding, features: FeatureStore, precision: TrainingPrecision
) -> VideoEmbeddings:
    """Embed all videos of a feature store, in float32, on its device."""
    parts, batch = [], BATCH[features.device.type]
    for start in range(0, len(features), batch):
        some = torch.arange(start, min(start + batch, len(features)))
        with precision.autocast():
            parts.append(module.embed_videos(features.batch(some.to(features.storage_device))))
    return VideoEmbeddings(
        torch.cat([part.vectors.float() for part in parts]), torch.cat([part.available for part in parts])
    )


@torch.inference_mode()
def embed_texts(module: JointEmbedding, texts: CaptionStore, precision: TrainingPrecision) -> QueryEmbeddings:
    """Embed all captions, in float32, in their order. Those of one length go together."""
    order = np.argsort(texts.host_counts, kind="stable")
    vectors, weights, batch = [], [], BATCH[texts.device.type]
    for start in range(0, len(order), batch):
        numbers = order[start : start + batch]
        longest = int(texts.host_counts[numbers].max())
        tokens = texts.batch(torch.from_numpy(numbers), longest)
        with precision.autocast():
            queries = module.embed_queries(tokens)
        vectors.append(queries.vectors.float())
        weights.append(queries.weights.float())
    back = torch.from_numpy(np.argsort(order, kind="stable")).to(vectors[0].device)
    return QueryEmbeddings(torch.cat(vectors)[back], torch.cat(weights)[back])


def similarity_matrix(queries: QueryEmbeddings, videos: VideoEmbeddings) -> Float32:
    """Return similarities `[captions, videos]` on the host, computed some rows at a time."""
    rows = max(1, BLOCK // max(1, len(videos.vectors)))
    blocks = zip(torch.split(queries.vectors, rows), torch.split(queries.weights, rows), strict=True)
    return np.concatenate([similarity(QueryEmbeddings(*block), videos).cpu().numpy() for block in blocks])


def measure(similarities: Float32, counts: Int64) -> ValidationMetrics:
    """Return metrics both ways of `similarities [captions, videos]`.

    `counts [videos]` says how many captions each video has; those of one video are adjacent.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    captions = Captions(len(counts), owner, np.ones(len(owner), bool))
    return ValidationMetrics(text_to_video(similarities, captions), video_to_text(similarities, captions))
