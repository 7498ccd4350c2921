"""Scores of the dynamic methods: some rows are corrected, others plain.

The rows live on different scales, so a column of them means nothing: they rank items within a query and
never queries within an item. For the other direction, fit a bank of that direction and pass its own query
rows (see `direction.query_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from wordreel.errors import HubnessError
from wordreel.types import Array, Bool

REFUSAL = (
    "scores of a dynamic method compare items within one query only, so they must not be transposed; for the "
    "other direction fit a bank of its queries and pass query_rows(similarities, direction)"
)


@dataclass(frozen=True)
class GatedScores:
    """`scores [queries, items]` and which queries were `activated [queries]`."""

    scores: Array
    activated: Bool

    @property
    def ranking_scores(self) -> Array:
        """The scores, to be sorted row by row."""
        return self.scores

    @property
    def shape(self) -> tuple[int, ...]:
        return self.scores.shape

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def T(self) -> NoReturn:
        raise HubnessError(REFUSAL)

    def transpose(self, *_axes: Any) -> NoReturn:
        raise HubnessError(REFUSAL)

    def __array__(self, *_args: Any, **_named: Any) -> NoReturn:
        raise HubnessError(f"use .ranking_scores; {REFUSAL}")


def ranking_scores(scores: Array | GatedScores) -> Array:
    """The array of scores to rank each row by, whether or not a method gates its queries.

    Gated scores compare within a row only: those of a corrected query are not on the scale of a plain one.
    """
    return scores.ranking_scores if isinstance(scores, GatedScores) else scores
