"""Where a retrieval is strong and weak: recall by query length and expert, best and worst queries, hubs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.lab.evaluate.runs import EvaluationRun
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.types import Bool, Int64

GROUP_METRICS = ("R1", "R5", "R10", "MdR")
LENGTHS = ((1, 4), (5, 6), (7, 8), (9, 11), (12, 16), (17, None))  # words


@dataclass(frozen=True)
class QueryGroup:
    """Some of the queries and their metrics."""

    name: str
    metrics: RetrievalMetrics

    def entry(self) -> dict[str, Any]:
        """As it is in a results file."""
        return {
            "name": self.name,
            "queries": self.metrics.queries,
            **self.metrics.table(GROUP_METRICS),
        }


def by_length(run: EvaluationRun, texts: Sequence[str]) -> list[QueryGroup]:
    """Return queries by their number of words; only the lengths that occur."""
    words = np.array([len(text.split()) for text in texts])
    groups = []
    for low, high in LENGTHS:
        name = f"{low} words and more" if high is None else f"{low}–{high} words"
        inside = (words >= (low if low > 1 else 0)) & (words <= (high or words.max(initial=0)))
        groups += _group(name, run, inside)
    return groups


def by_expert(run: EvaluationRun, owner: Int64, experts: Mapping[str, Sequence[bool]]) -> list[QueryGroup]:
    """Return queries by whether an expert has features of the video they look for."""
    groups = []
    for expert, present in experts.items():
        has = np.asarray(present, bool)[owner]
        groups += _group(f"{expert}: there", run, has)
        groups += _group(f"{expert}: absent", run, ~has)
    return groups


def _group(name: str, run: EvaluationRun, chosen: Bool) -> list[QueryGroup]:
    ranks = run.ranks[chosen & ~np.isnan(run.ranks)]
    return [QueryGroup(name, retrieval_metrics(ranks))] if len(ranks) else []


@dataclass(frozen=True)
class QueryExample:
    """A query, the column it looks for, that column's rank, and the columns that came first."""

    query: int
    right: int
    rank: float
    retrieved: tuple[int, ...]


@dataclass(frozen=True)
class HubItem:
    """An item that is often among the best, and how many of these times it was the right answer."""

    item: int
    times: int
    right: int


def best_and_worst(
    run: EvaluationRun, owner: Int64, count: int = 6, count_retrieved: int = 4
) -> tuple[list[QueryExample], list[QueryExample]]:
    """Return queries in the order of rank, then of margin over the best wrong item; one query per video.

    No query is in both lists; few videos give short lists.
    """
    if run.ranking is None:
        return [], []
    best = run.ranking.best
    answered = np.flatnonzero(~np.isnan(run.ranks))
    order = answered[np.lexsort((answered, -run.ranking.margins[answered], run.ranks[answered]))]
    count = min(count, len(np.unique(owner[answered])) // 2)

    def taken(queries: Int64) -> list[QueryExample]:
        seen: dict[int, QueryExample] = {}
        for query in queries.tolist():
            if len(seen) == count:
                break
            right = int(owner[query])
            if right not in seen:
                seen[right] = QueryExample(
                    query, right, float(run.ranks[query]), tuple(best[query, :count_retrieved].tolist())
                )
        return list(seen.values())

    return taken(order), taken(order[::-1])


def hubs(run: EvaluationRun, owner: Int64, count: int = 8) -> list[HubItem]:
    """Return the items that are most often among the first, most frequent first."""
    times = run.occurrences
    if times is None or run.ranking is None:
        return []
    right = (run.ranking.best == owner[:, None]).any(axis=1) & ~np.isnan(run.ranks)
    own = np.bincount(owner[right], minlength=len(times))
    order = np.lexsort((np.arange(len(times)), -times))[:count]
    return [HubItem(int(item), int(times[item]), int(own[item])) for item in order if times[item] > 0]
