"""Measuring one similarity matrix in full: ranks of every query in both directions, plain and normalised.

A `Run` is one ranking of all queries: who asks, by which protocol it is counted, and what was done to the
scores. Plain runs come first. Everything later, tables, pages and comparisons, is made from runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.evaluate.ranks import Recall, ranks_of, recall
from wordreel.evaluate.retrieval import Array, Captions, Ids, Protocol, row_blocks, video_to_text_ranks
from wordreel.hubness import Hubness, Method, measure_hubness
from wordreel.hubness.blocks import widen
from wordreel.hubness.gated import ranking_scores
from wordreel.hubness.measures import k_occurrence
from wordreel.index.topk import topk_ids
from wordreel.types import Float64

Way = Literal["t2v", "v2t"]

TOP = 10  # items kept of each query's ranking, and the k of the k-occurrences


@dataclass(frozen=True)
class Ranking:
    """What came first: `best [queries, up to TOP]` items, and how far the right one leads."""

    best: Ids
    margins: Float64  # [queries]


@dataclass(frozen=True)
class Run:
    """One ranking. `ranks [queries]` count from 1, ties at the mean of their places; NaN asks nothing."""

    direction: Way
    protocol: str  # how v2t is counted, "ce" or "clip"; "" for t2v
    postprocessing: str
    items: int
    ranks: Float64
    ranking: Ranking | None = None  # of texts that look for videos

    @property
    def counted(self) -> Float64:
        """The ranks of the queries that ask something."""
        return self.ranks[~np.isnan(self.ranks)]

    @property
    def figures(self) -> Recall:
        return recall(self.counted)

    @property
    def occurrences(self) -> Ids | None:
        """Nₖ `[items]` for k = TOP, where the ranking is known."""
        return None if self.ranking is None else k_occurrence(self._asked(), self._k, self.items)

    @property
    def hubness(self) -> Hubness | None:
        return None if self.ranking is None else measure_hubness(self._asked(), self._k, self.items)

    @property
    def name(self) -> str:
        """Short, for a legend."""
        way = "text → video" if self.direction == "t2v" else f"video → text ({self.protocol})"
        return way if self.postprocessing == "none" else f"{way}, normalised"

    @property
    def _k(self) -> int:
        return min(TOP, self.items)

    def _asked(self) -> Ids:
        assert self.ranking is not None  # noqa: S101 - the callers have looked
        return self.ranking.best[~np.isnan(self.ranks)]


@dataclass(frozen=True)
class Normalisation:
    """A method with the bank `[bank queries, videos]` it is fitted on, and the label its figures carry."""

    method: Method
    bank: Array | None
    label: str


def measure(
    similarities: Array,
    captions: Captions,
    directions: Sequence[Way] = ("t2v", "v2t"),
    protocol: Protocol = "ce",
    normalisation: Normalisation | None = None,
) -> list[Run]:
    """Rank `similarities [captions, videos]`. A normalisation adds a text-to-video run after the plain ones.

    >>> from wordreel.evaluate.retrieval import arrange
    >>> [run.figures.r1 for run in measure(np.eye(3), arrange(3, 3))]
    [100.0, 100.0]
    """
    if similarities.shape != (len(captions), captions.videos):
        raise EvaluationError(
            f"the matrix is {list(similarities.shape)}, but {len(captions)} captions of {captions.videos} "
            "videos are expected: rows are captions, columns videos"
        )
    runs = []
    if "t2v" in directions:
        runs.append(_texts(similarities, captions, "none", lambda rows: rows))
    if "v2t" in directions:
        ranks = video_to_text_ranks(similarities, captions, protocol=protocol)
        items = int(captions.valid.sum()) if protocol == "ce" else int((~np.isnan(ranks)).sum())
        runs.append(Run("v2t", protocol, "none", items, ranks))
    if normalisation is not None and "t2v" in directions:
        runs.append(_normalised(similarities, captions, normalisation))
    return runs


def _normalised(similarities: Array, captions: Captions, how: Normalisation) -> Run:
    method = how.method
    if method.transductive:
        state = method.fit(rows[captions.valid[span]] for span, rows in row_blocks(similarities))
    elif how.bank is None:
        raise EvaluationError(f"{method.name} needs a bank of queries; give one with --bank")
    elif how.bank.shape[1] != captions.videos:
        raise EvaluationError(
            f"the bank has {how.bank.shape[1]} columns for a gallery of {captions.videos}; the columns of "
            "both matrices are the same videos"
        )
    else:
        state = method.fit(how.bank)
    return _texts(
        similarities, captions, how.label, lambda rows: ranking_scores(method.apply(rows, state, threads=1))
    )


def _texts(similarities: Array, captions: Captions, label: str, scored: Callable[[Array], Array]) -> Run:
    ranks = np.empty(len(captions))
    margins = np.zeros(len(captions))
    best = np.zeros((len(captions), min(TOP, captions.videos)), np.int64)
    for span, block in row_blocks(similarities):
        rows = scored(widen(block))
        right = captions.owner[span]
        ranks[span] = ranks_of(rows, right)
        best[span] = topk_ids(rows, best.shape[1])
        margins[span] = _margins(rows, right, best[span])
    ranks[~captions.valid] = np.nan
    return Run("t2v", "", label, captions.videos, ranks, Ranking(best, margins))


def _margins(rows: Array, right: Ids, best: Ids) -> Float64:
    if best.shape[1] < 2:
        return np.zeros(len(rows))
    wrong = np.where(best[:, 0] == right, best[:, 1], best[:, 0])
    each = np.arange(len(rows))
    return np.asarray(rows[each, right] - rows[each, wrong], np.float64)
