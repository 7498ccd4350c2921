"""Pair two results, query by query, where both are over the same queries and gallery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.errors import EvaluationError, NextStep
from wordreel.hubness import Direction
from wordreel.lab.reports.report_files import SavedResult
from wordreel.types import Float64, Int64

NAMED = 3  # of the things that differ, these many are named


@dataclass(frozen=True)
class PairedRuns:
    """One direction of two results; `groups` names each query's video, since captions of one are alike."""

    direction: str
    protocol: str | None
    modality: str
    label_a: str
    label_b: str
    ranks_a: Float64
    ranks_b: Float64
    groups: Int64 | None


def pairs_of(
    a: SavedResult, b: SavedResult, run_a: int | None = None, run_b: int | None = None
) -> list[PairedRuns]:
    """Return the plain runs of both in each common direction, or the requested runs (from 1)."""
    check(a, b)
    if run_a is None and run_b is None:
        directions = [
            direction
            for direction in Direction
            if _plain(a, direction) is not None and _plain(b, direction) is not None
        ]
        chosen = [(_plain(a, direction), _plain(b, direction)) for direction in directions]
    else:
        first = _numbered(a, run_a or 1)
        direction = a.facts["runs"][first]["direction"]
        chosen = [(first, _plain(b, direction) if run_b is None else _numbered(b, run_b))]
    if not chosen or None in chosen[0]:
        raise EvaluationError(
            f"{a.name} and {b.name} have no direction in common; evaluate both the same direction"
        )
    return [_pair(a, b, i, j) for i, j in chosen if i is not None and j is not None]


def check(a: SavedResult, b: SavedResult) -> None:
    """Refuse results over different galleries or queries, and say what differs."""
    bare = [saved.facts["measured"]["kind"] == "matrix" for saved in (a, b)]
    if bare[0] != bare[1]:
        raise EvaluationError(
            f"{(a, b)[bare.index(True)].name} is of a bare matrix, which does not name its rows and columns; "
            "evaluate both as matrices",
            NextStep("save a library's matrix", "evaluate … --save SIMS.npy"),
        )
    for what, unit, names_of in (("galleries", "videos", _videos), ("queries", "captions", _captions)):
        names_a, names_b = names_of(a), names_of(b)
        if sorted(names_a) != sorted(names_b):
            raise EvaluationError(
                f"{a.name} and {b.name} have different {what}: {len(names_a)} and {len(names_b)} {unit}"
                + _only(a, names_a, names_b)
                + _only(b, names_b, names_a)
            )


def _videos(saved: SavedResult) -> list[tuple[str, int]]:
    return [(video, 0) for video in saved.queries.videos]


def _captions(saved: SavedResult) -> list[tuple[str, int]]:
    queries = saved.queries
    pairs = zip(queries.owner.tolist(), queries.keys.tolist(), strict=True)
    return [(f"one of {queries.videos[owner]}", key) for owner, key in pairs]


def _only(saved: SavedResult, names: Sequence[tuple[str, int]], others: Sequence[tuple[str, int]]) -> str:
    """Name some of what only one of the two has."""
    known = set(others)
    extra = [name for name in names if name not in known]
    if not extra:
        return ""
    more = f" and {len(extra) - NAMED} more" if len(extra) > NAMED else ""
    return f"; only in {saved.name}: {', '.join(name for name, _ in extra[:NAMED])}{more}"


def _plain(saved: SavedResult, direction: Direction) -> int | None:
    """Return the first run of a direction: plain ones come first."""
    return next((n for n, run in enumerate(saved.facts["runs"]) if run["direction"] == direction), None)


def _numbered(saved: SavedResult, number: int) -> int:
    if not 1 <= number <= len(saved.ranks):
        raise EvaluationError(f"{saved.name} has runs 1 to {len(saved.ranks)}, not {number}")
    return number - 1


def _pair(a: SavedResult, b: SavedResult, i: int, j: int) -> PairedRuns:
    one, other = a.facts["runs"][i], b.facts["runs"][j]
    if (one["direction"], one["protocol"]) != (other["direction"], other["protocol"]):
        raise EvaluationError(
            f"{a.name} is counted as {_way(one)} and {b.name} as {_way(other)}; that cannot be compared"
        )
    texts = one["direction"] == Direction.TEXT_TO_VIDEO
    order_a, order_b = (_order(saved, texts) for saved in (a, b))
    groups = None
    if texts:
        names = np.array(a.queries.videos)[a.queries.owner][order_a]
        groups = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return PairedRuns(
        one["direction"],
        one["protocol"],
        one.get("modality", "video"),
        one["postprocessing"],
        other["postprocessing"],
        a.ranks[i][order_a],
        b.ranks[j][order_b],
        groups,
    )


def _way(run: dict[str, Any]) -> str:
    return f"{run['direction']} ({run['protocol']})" if run["protocol"] else str(run["direction"])


def _order(saved: SavedResult, texts: bool) -> Int64:
    """Return an order of the queries that does not depend on how the dataset was listed."""
    names = np.array(saved.queries.videos)
    if not texts:
        return np.argsort(names, kind="stable")
    return np.lexsort((saved.queries.keys, names[saved.queries.owner]))
