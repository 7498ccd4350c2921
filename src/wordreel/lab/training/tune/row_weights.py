"""Choose on captions how much each row of a backbone's model counts.

The towers stay as they are; the weights of motion, sound, speech and on-screen text beside row 0 move over a
grid, one row after the other, to the least mean log rank. Every captioned video judges once, by weights
chosen without it, as in `cross_validation`; the model gets the mean of the folds' weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.banks import everyday
from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune.cross_validation import DOUBT, METRIC, folds
from wordreel.lab.training.tune.ranking import TOP, mean_log_rank, overlap
from wordreel.lab.training.tune.tune_data import AT_ONCE, OTHERS
from wordreel.models.base import Model
from wordreel.models.similarity import divide
from wordreel.models.zero_shot import ZeroShot
from wordreel.progress import Progress, ProgressCallback
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.retrieval.ranks import ranks_of
from wordreel.retrieval.significance import Comparison, compare
from wordreel.search.lexical import lexical_matches
from wordreel.search.searcher import Searcher
from wordreel.types import Bool, Float32, Float64, Int64

GRID = (0.0, 0.1, 0.2, 0.4, 0.6, 1.0, 1.5)
PASSES = 2  # over the rows
MOST_VALUES = 250_000_000  # similarities in memory, 1 GB


@dataclass(frozen=True, eq=False)
class RowScores:
    """Similarities of texts and items, row by row, and what a search adds for words said and shown.

    `rows [experts, texts, items]`, `available [items, experts]`, `bonus [texts, items]`; items stand video by
    video, and `edges [videos]` is where each video begins.
    """

    rows: Float32
    available: Bool
    bonus: Float32
    edges: Int64

    def best(self, weights: Float32, texts: Int64 | slice = slice(None)) -> Float32:
        """`[texts, videos]`: the mixture similarity of each video's best item."""
        top = np.tensordot(weights, self.rows[:, texts], 1)
        total = self.available.astype(np.float32) @ weights
        items = divide(top, np.broadcast_to(total, top.shape)) + self.bonus[texts]
        return np.asarray(np.maximum.reduceat(items, self.edges, axis=1), np.float32)


@dataclass(frozen=True, eq=False)
class RowData:
    """Captions of videos, `owner [captions]`, and everyday queries, both against the same items."""

    captions: RowScores
    everyday: RowScores
    owner: Int64
    videos: int  # with captions; they come first
    gallery: int

    def ranks(self, weights: Float32, captions: Int64) -> Float64:
        """`[captions]`"""
        return np.asarray(ranks_of(self.captions.best(weights, captions), self.owner[captions]), np.float64)


@dataclass(frozen=True, eq=False)
class RowChoice:
    """Held-out captions before and after, and the weights by row."""

    weights: dict[str, float]
    before: RetrievalMetrics
    after: RetrievalMetrics
    gain: Comparison
    everyday_kept: float

    @property
    def better(self) -> bool:
        return self.gain.low > 0 and self.gain.p_value <= DOUBT


def choose_row_weights(
    data: RowData, model: ZeroShot, settings: TuneSettings, on_progress: ProgressCallback | None = None
) -> RowChoice:
    """Choose in folds, judge on the videos held out."""
    start = np.array(model.expert_weights, np.float32)
    before, after = np.full(len(data.owner), np.nan), np.full(len(data.owner), np.nan)
    chosen: list[Float32] = []
    parts = folds(data.videos, settings)
    for number, fold in enumerate(parts):
        if on_progress:
            on_progress(Progress("cross-validating", number, len(parts)))
        weights = best_weights(data, _captions(data, np.concatenate([fold.learn, fold.choose])), start)
        judged = _captions(data, fold.judge)
        before[judged], after[judged] = data.ranks(start, judged), data.ranks(weights, judged)
        chosen.append(weights)
    if on_progress:
        on_progress(Progress("cross-validating", len(parts), len(parts)))
    mean = np.mean(chosen, axis=0).round(2).astype(np.float32)
    return RowChoice(
        dict(zip(model.experts, mean.astype(float).round(2).tolist(), strict=True)),
        retrieval_metrics(before),
        retrieval_metrics(after),
        compare(before, after, METRIC, groups=data.owner, seed=settings.seed),
        overlap(_top(data.everyday.best(start)), _top(data.everyday.best(mean))),
    )


def best_weights(data: RowData, captions: Int64, start: Float32) -> Float32:
    """Row 0 stays at its weight; the others go over the grid in turn. Of equals, the weight they had."""
    weights = start.copy()
    value = float(mean_log_rank(data.ranks(weights, captions)))
    for row in [*range(1, len(weights))] * PASSES:
        for candidate in GRID:
            tried = weights.copy()
            tried[row] = candidate
            found = float(mean_log_rank(data.ranks(tried, captions)))
            if found < value - 1e-9:
                weights, value = tried, found
    return weights


def gather_rows(
    searcher: Searcher,
    model: Model,
    captions: Mapping[str, Sequence[str]],
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> RowData:
    """Compare every caption with the captioned videos and some others, row by row."""
    snapshot = searcher.snapshot
    with_words = [content for content in sorted(captions) if content in snapshot]
    rest = sorted(set(snapshot.contents()) - set(with_words))
    drawn = np.random.default_rng(seed).permutation(len(rest))[:OTHERS]
    contents = [*with_words, *(rest[number] for number in np.sort(drawn))]
    items = [snapshot.rows(content) for content in contents]
    at = np.array([row for own in items for row in own], np.int64)
    edges = np.cumsum([0, *map(len, items)])[:-1].astype(np.int64)
    texts = [text for content in with_words for text in captions[content]]
    owner = np.repeat(np.arange(len(with_words)), [len(captions[content]) for content in with_words])
    most = max(MOST_VALUES // (len(model.experts) * max(len(at), 1)), 1)
    if len(texts) > most:
        some = np.sort(np.random.default_rng(seed).permutation(len(texts))[:most])
        texts, owner = [texts[number] for number in some], owner[some]
    scores = row_scores(searcher, model, texts, at, edges, on_progress)
    usual = row_scores(searcher, model, everyday.queries()[:most], at, edges)
    return RowData(scores, usual, owner.astype(np.int64), len(with_words), len(contents))


def row_scores(
    searcher: Searcher,
    model: Model,
    texts: Sequence[str],
    at: Int64,
    edges: Int64,
    on_progress: ProgressCallback | None = None,
) -> RowScores:
    """Compare texts with the items in rows `at` of the snapshot, which stand video by video."""
    gallery = searcher.snapshot.gallery
    vectors, available = np.asarray(gallery.vectors[at]), np.asarray(gallery.available[at])
    rows = np.empty((len(model.experts), len(texts), len(at)), np.float32)
    bonus = np.zeros((len(texts), len(at)), np.float32)
    for start in range(0, len(texts), AT_ONCE):
        span = slice(start, start + AT_ONCE)
        queries = np.stack([query.vectors for query in model.encode(texts[span])])
        for row in range(len(model.experts)):
            rows[row, span] = queries[:, row] @ (vectors[:, row] * available[:, row, None]).T
        if on_progress:
            on_progress(Progress("encoding captions", min(start + AT_ONCE, len(texts)), len(texts)))
    for number, text in enumerate(texts):
        bonus[number] = lexical_matches(searcher.snapshot, text).of(at)
    return RowScores(rows, available, bonus, edges)


def _captions(data: RowData, videos: Int64) -> Int64:
    return np.flatnonzero(np.isin(data.owner, videos)).astype(np.int64)


def _top(scores: Float32) -> Int64:
    top = min(TOP, scores.shape[1])
    return np.asarray(np.argpartition(-scores, top - 1, axis=1)[:, :top], np.int64)
