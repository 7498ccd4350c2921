"""Which side asks, and the scores of the dynamic methods: some rows are corrected, others plain.

Every method wants its queries in the rows. Gated rows live on different scales, so a column of them means
nothing: they rank items within a query and never queries within an item. For the other direction, fit a bank
of that direction and pass its own query rows (`query_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import matrix
from wordreel.types import Array, Bool

REFUSAL = (
    "scores of a dynamic method compare items within one query only, so they must not be transposed; for the "
    "other direction fit a bank of its queries and pass query_rows(similarities, direction)"
)


class Direction(StrEnum):
    """Text to video: captions ask, videos are the gallery. Video to text: the other way round."""

    TEXT_TO_VIDEO = "t2v"
    VIDEO_TO_TEXT = "v2t"


def query_rows(similarities: Array, direction: Direction) -> Array:
    """Return the `[queries, items]` view of `similarities [captions, videos]` for a direction.

    Use it for the bank and for the test queries alike: video to text has a bank of videos.

    >>> import numpy as np
    >>> query_rows(np.zeros((5, 3)), Direction.VIDEO_TO_TEXT).shape
    (3, 5)
    """
    similarities = matrix(similarities, "the similarities")
    return similarities if direction is Direction.TEXT_TO_VIDEO else similarities.T


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
    """Return the array of scores to rank each row by, whether or not a method gates its queries.

    Gated scores compare within a row only: those of a corrected query are not on the scale of a plain one.
    """
    return scores.ranking_scores if isinstance(scores, GatedScores) else scores
