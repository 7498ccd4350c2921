"""All rankings of one similarity matrix: text to video and video to text, plain and normalised.

An `EvaluationRun` is one ranking of all queries: its direction, protocol and post-processing
of the scores. Plain runs come first. Tables, pages and comparisons show runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from wordreel.errors import EvaluationError, NextStep
from wordreel.hubness import Direction, Hubness
from wordreel.hubness.blocks import widen
from wordreel.lab.evaluate.normalised_rankings import Normalisation, NormalisedRankings, rank_normalised
from wordreel.retrieval.caption_ranks import Captions, Protocol, video_to_text_ranks
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.retrieval.rankings import Ranking, rank_queries, rank_right_items
from wordreel.types import Array, Float64, Int64

TOP = 10  # items stored of each query's ranking, and the k of the k-occurrences
TEXT_TO_VIDEO, VIDEO_TO_TEXT = Direction.TEXT_TO_VIDEO, Direction.VIDEO_TO_TEXT
Modality = Literal["video", "image", "audio"]


@dataclass(frozen=True)
class EvaluationRun:
    """One ranking. `ranks [queries]` count from 1, ties at the mean of their ranks; NaN asks nothing."""

    direction: Direction
    protocol: str  # how v2t is counted, "ce" or "clip"; "" for t2v
    postprocessing: str
    items: int
    ranks: Float64
    ranking: Ranking | None = None  # of texts that look for videos
    method: str = "none"
    transductive: bool = False  # a query's ranking depends on the other test queries
    modality: Modality = "video"

    @property
    def answered(self) -> Float64:
        """The ranks of the queries that have a right answer."""
        return self.ranks[~np.isnan(self.ranks)]

    @property
    def metrics(self) -> RetrievalMetrics:
        return retrieval_metrics(self.ranks)

    @property
    def occurrences(self) -> Int64 | None:
        """Nₖ `[items]` for k = TOP, where the ranking is known."""
        return None if self.ranking is None else self.ranking.occurrences

    @property
    def hubness(self) -> Hubness | None:
        return None if self.ranking is None else self.ranking.hubness

    @property
    def short_label(self) -> str:
        """The post-processing, short, for a legend."""
        if self.postprocessing == "none":
            return "plain"
        return f"{self.method}, transductive: uses all test queries" if self.transductive else self.method

    @property
    def name(self) -> str:
        """Short, for a legend."""
        texts = self.direction is TEXT_TO_VIDEO
        name = f"text → {self.modality}" if texts else f"{self.modality} → text ({self.protocol})"
        return name if self.postprocessing == "none" else f"{name}, {self.short_label}"


def measure(
    similarities: Array,
    captions: Captions,
    directions: Sequence[Direction] = (TEXT_TO_VIDEO, VIDEO_TO_TEXT),
    protocol: Protocol = "ce",
    normalisations: Sequence[Normalisation] = (),
    modality: Modality = "video",
) -> list[EvaluationRun]:
    """Rank `similarities [captions, videos]`.

    Args:
        similarities: Larger is better; rows are captions, columns videos.
        captions: Which captions belong to which video, and which are valid.
        directions: Who asks.
        protocol: How video to text is counted.
        normalisations: Each adds a normalised run of its direction, where that is asked for.
        modality: What the columns are: videos, images or sounds.

    Returns:
        The plain runs in the order of `directions`, then the normalised ones in their order.

    Raises:
        EvaluationError: The matrices do not fit the captions.

    >>> from wordreel.retrieval.caption_ranks import arrange
    >>> [run.metrics.r1 for run in measure(np.eye(3), arrange(3, 3))]
    [100.0, 100.0]
    """
    if similarities.shape != (len(captions), captions.videos):
        raise EvaluationError(
            f"the matrix is {list(similarities.shape)}, but {len(captions)} captions of {captions.videos} "
            "videos are expected: rows are captions, columns videos"
        )
    runs = []
    if TEXT_TO_VIDEO in directions:
        plain = _plain(similarities, captions)
        runs.append(EvaluationRun(TEXT_TO_VIDEO, "", "none", plain.items, plain.ranks, plain))
    if VIDEO_TO_TEXT in directions:
        ranks = video_to_text_ranks(similarities, captions, protocol=protocol)
        runs.append(EvaluationRun(VIDEO_TO_TEXT, protocol, "none", _candidates(captions, protocol), ranks))
    for how in normalisations:
        if how.direction in directions:
            texts = how.direction is TEXT_TO_VIDEO
            after = _normalised(similarities, captions, protocol, how).after
            run = EvaluationRun(
                how.direction,
                "" if texts else protocol,
                how.label,
                after.items if texts else _candidates(captions, protocol),
                after.ranks,
                after if texts else None,
                how.method.name,
                how.transductive,
            )
            runs.append(run)
    return [replace(run, modality=modality) for run in runs]


def _candidates(captions: Captions, protocol: Protocol) -> int:
    """Return what a video ranks: valid captions, or the groups that have any."""
    valid = captions.owner[captions.valid]
    return len(valid) if protocol == "ce" else len(np.unique(valid))


def _plain(similarities: Array, captions: Captions) -> Ranking:
    (ranking,) = rank_queries(
        lambda start, stop: [widen(similarities[start:stop])],
        rank_right_items(captions.owner),
        len(captions),
        captions.videos,
        k=min(TOP, captions.videos),
    )
    return ranking.only(captions.valid)


def _normalised(
    similarities: Array, captions: Captions, protocol: Protocol, how: Normalisation
) -> NormalisedRankings:
    rows = similarities if how.direction is TEXT_TO_VIDEO else similarities.T
    if how.bank is None and not how.method.transductive:
        raise EvaluationError(f"{how.method.name} needs a bank of queries", NextStep("give one with --bank"))
    bank = rows if how.bank is None else how.bank  # a transductive method is fitted on the test queries
    return rank_normalised(
        how.method,
        bank,
        rows,
        captions,
        how.direction,
        protocol=protocol,
        save=how.save,
        k=min(TOP, captions.videos),
        device=how.device,
    )


@dataclass(frozen=True)
class Fold:
    """Neighbouring videos `columns` with their captions `rows`: a test set of its own."""

    rows: slice
    columns: slice
    captions: Captions


def split_folds(captions: Captions, folds: int) -> list[Fold]:
    """Cut a test set into `folds` parts with equally many videos, in their order.

    >>> from wordreel.retrieval.caption_ranks import arrange
    >>> [fold.rows for fold in split_folds(arrange(4, 12), 2)]
    [slice(0, 6, None), slice(6, 12, None)]
    """
    if captions.videos % folds:
        raise EvaluationError(f"{captions.videos} items cannot be cut into {folds} folds of one size")
    size = captions.videos // folds
    edges = np.searchsorted(captions.owner, np.arange(0, captions.videos + 1, size)).tolist()
    return [
        Fold(
            slice(edges[n], edges[n + 1]),
            slice(n * size, (n + 1) * size),
            Captions(
                size,
                captions.owner[edges[n] : edges[n + 1]] - n * size,
                captions.valid[edges[n] : edges[n + 1]],
            ),
        )
        for n in range(folds)
    ]
