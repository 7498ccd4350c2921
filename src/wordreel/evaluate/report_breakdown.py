"""Where a retrieval is strong and weak: recall by the length of the query, and by what experts saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.evaluate.ranks import recall
from wordreel.evaluate.report import Run
from wordreel.evaluate.retrieval import Ids
from wordreel.types import Bool

LENGTHS = ((1, 4), (5, 6), (7, 8), (9, 11), (12, 16), (17, None))  # words


@dataclass(frozen=True)
class Group:
    """Some of the queries and how they fared."""

    name: str
    queries: int
    R1: float
    R5: float
    R10: float
    MdR: float


def by_length(run: Run, texts: Sequence[str]) -> list[Group]:
    """Queries by their number of words; only the lengths that occur."""
    words = np.array([len(text.split()) for text in texts])
    groups = []
    for low, high in LENGTHS:
        name = f"{low} words and more" if high is None else f"{low}–{high} words"
        inside = (words >= (low if low > 1 else 0)) & (words <= (high or words.max(initial=0)))
        groups += _group(name, run, inside)
    return groups


def by_expert(run: Run, owner: Ids, experts: Mapping[str, Sequence[bool]]) -> list[Group]:
    """Queries by whether an expert has something to say about the video they look for."""
    groups = []
    for expert, speaks in experts.items():
        heard = np.asarray(speaks, bool)[owner]
        groups += _group(f"{expert}: there", run, heard)
        groups += _group(f"{expert}: absent", run, ~heard)
    return groups


def _group(name: str, run: Run, chosen: Bool) -> list[Group]:
    ranks = run.ranks[chosen & ~np.isnan(run.ranks)]
    if len(ranks) == 0:
        return []
    found = recall(ranks)
    return [Group(name, len(ranks), found.r1, found.r5, found.r10, found.median_rank)]
