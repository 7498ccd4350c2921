"""All rankings of one similarity matrix: text to video and video to text, plain and normalised.

An `EvaluationRun` is one ranking of all queries: its direction, protocol and post-processing
of the scores. Plain runs come first. Tables, pages and comparisons show runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.errors import EvaluationError, NextStep
from wordreel.evaluate.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.evaluate.rankings import Normalisation, Ranking, RightItem, rank_normalised, rank_queries
from wordreel.evaluate.retrieval import Array, Captions, Ids, Protocol, video_to_text_ranks
from wordreel.hubness import Direction, Hubness
from wordreel.hubness.blocks import widen
from wordreel.types import Float64

TOP = 10  # items stored of each query's ranking, and the k of the k-occurrences
TEXT_TO_VIDEO, VIDEO_TO_TEXT = Direction.TEXT_TO_VIDEO, Direction.VIDEO_TO_TEXT


@dataclass(frozen=True)
class EvaluationRun:
    """One ranking. `ranks [queries]` count from 1, ties at the mean of their ranks; NaN asks nothing."""

    direction: Direction
    protocol: str  # how v2t is counted, "ce" or "clip"; "" for t2v
    postprocessing: str
    items: int
    ranks: Float64
    ranking: Ranking | None = None  # of texts that look for videos

    @property
    def answered(self) -> Float64:
        """The ranks of the queries that have a right answer."""
        return self.ranks[~np.isnan(self.ranks)]

    @property
    def metrics(self) -> RetrievalMetrics:
        return retrieval_metrics(self.ranks)

    @property
    def occurrences(self) -> Ids | None:
        """Nₖ `[items]` for k = TOP, where the ranking is known."""
        return None if self.ranking is None else self.ranking.occurrences

    @property
    def hubness(self) -> Hubness | None:
        return None if self.ranking is None else self.ranking.hubness

    @property
    def name(self) -> str:
        """Short, for a legend."""
        texts = self.direction is TEXT_TO_VIDEO
        name = "text → video" if texts else f"video → text ({self.protocol})"
        return name if self.postprocessing == "none" else f"{name}, normalised"


def measure(
    similarities: Array,
    captions: Captions,
    directions: Sequence[Direction] = (TEXT_TO_VIDEO, VIDEO_TO_TEXT),
    protocol: Protocol = "ce",
    normalisation: Normalisation | None = None,
) -> list[EvaluationRun]:
    """Rank `similarities [captions, videos]`.

    Args:
        similarities: Larger is better; rows are captions, columns videos.
        captions: Which captions belong to which video, and which are valid.
        directions: Who asks.
        protocol: How video to text is counted.
        normalisation: Adds a normalised text-to-video run after the plain ones.

    Returns:
        The plain runs in the order of `directions`, then the normalised one.

    Raises:
        EvaluationError: The matrices do not fit the captions.

    >>> from wordreel.evaluate.retrieval import arrange
    >>> [run.metrics.r1 for run in measure(np.eye(3), arrange(3, 3))]
    [100.0, 100.0]
    """
    if similarities.shape != (len(captions), captions.videos):
        raise EvaluationError(
            f"the matrix is {list(similarities.shape)}, but {len(captions)} captions of {captions.videos} "
            "videos are expected: rows are captions, columns videos"
        )
    plain: Ranking | None = None
    normalised: Ranking | None = None
    if TEXT_TO_VIDEO in directions:
        if normalisation is None:
            plain = _plain(similarities, captions)
        else:
            plain, normalised = _normalised(similarities, captions, normalisation)
    runs = []
    if plain is not None:
        runs.append(_texts(plain, "none"))
    if VIDEO_TO_TEXT in directions:
        ranks = video_to_text_ranks(similarities, captions, protocol=protocol)
        items = int(captions.valid.sum()) if protocol == "ce" else int((~np.isnan(ranks)).sum())
        runs.append(EvaluationRun(VIDEO_TO_TEXT, protocol, "none", items, ranks))
    if normalised is not None and normalisation is not None:
        runs.append(_texts(normalised, normalisation.label))
    return runs


def _plain(similarities: Array, captions: Captions) -> Ranking:
    (ranking,) = rank_queries(
        lambda start, stop: [widen(similarities[start:stop])],
        RightItem(captions.owner),
        len(captions),
        captions.videos,
        k=min(TOP, captions.videos),
    )
    return ranking.only(captions.valid)


def _normalised(similarities: Array, captions: Captions, how: Normalisation) -> tuple[Ranking, Ranking]:
    bank = how.bank
    if bank is None:
        if not how.method.transductive:
            raise EvaluationError(
                f"{how.method.name} needs a bank of queries", NextStep("give one with --bank")
            )
        bank = similarities  # a transductive method is fitted on the test queries
    elif bank.shape[1] != captions.videos:
        raise EvaluationError(
            f"the bank has {bank.shape[1]} columns for a gallery of {captions.videos}; the columns of "
            "both matrices are the same videos"
        )
    result = rank_normalised(
        how.method,
        bank,
        similarities,
        captions,
        save=how.save,
        k=min(TOP, captions.videos),
        device=how.device,
    )
    return result.before, result.after


def _texts(ranking: Ranking, label: str) -> EvaluationRun:
    return EvaluationRun(TEXT_TO_VIDEO, "", label, ranking.items, ranking.ranks, ranking)
