"""What to show of a retrieval: its best and worst queries, and its hubs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.evaluate.report import Run
from wordreel.evaluate.retrieval import Ids


@dataclass(frozen=True)
class Example:
    """A query, the column it looks for, the rank that got, and the columns that came first."""

    query: int
    right: int
    rank: float
    found: tuple[int, ...]


@dataclass(frozen=True)
class Hub:
    """An item that is often among the best, and how many of these times it was the right answer."""

    item: int
    times: int
    right: int


def best_and_worst(
    run: Run, owner: Ids, count: int = 6, shown: int = 4
) -> tuple[list[Example], list[Example]]:
    """Queries in the order of rank, then of margin over the best wrong item; one query per video.

    No query is among both: of few videos fewer are shown.
    """
    if run.ranking is None:
        return [], []
    best = run.ranking.best
    asked = np.flatnonzero(~np.isnan(run.ranks))
    order = asked[np.lexsort((asked, -run.ranking.margins[asked], run.ranks[asked]))]
    count = min(count, len(np.unique(owner[asked])) // 2)

    def taken(queries: Ids) -> list[Example]:
        seen: dict[int, Example] = {}
        for query in queries.tolist():
            if len(seen) == count:
                break
            right = int(owner[query])
            if right not in seen:
                seen[right] = Example(
                    query, right, float(run.ranks[query]), tuple(best[query, :shown].tolist())
                )
        return list(seen.values())

    return taken(order), taken(order[::-1])


def hubs(run: Run, owner: Ids, count: int = 8) -> list[Hub]:
    """The items that stand most often among the best, most frequent first."""
    times = run.occurrences
    if times is None or run.ranking is None:
        return []
    right = (run.ranking.best == owner[:, None]).any(axis=1) & ~np.isnan(run.ranks)
    own = np.bincount(owner[right], minlength=len(times))
    order = np.lexsort((np.arange(len(times)), -times))[:count]
    return [Hub(int(item), int(times[item]), int(own[item])) for item in order if times[item] > 0]
