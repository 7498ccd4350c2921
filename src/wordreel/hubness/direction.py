"""Which side asks. Every method wants its queries in the rows."""

from __future__ import annotations

from enum import StrEnum

from wordreel.hubness.blocks import matrix
from wordreel.types import Array


class Direction(StrEnum):
    """Text to video: captions ask, videos are the gallery. Video to text: the other way round."""

    TEXT_TO_VIDEO = "t2v"
    VIDEO_TO_TEXT = "v2t"


def query_rows(similarities: Array, direction: Direction) -> Array:
    """The `[queries, items]` view of `similarities [captions, videos]` for a direction.

    Use it for the bank and for the test queries alike: video to text has a bank of videos.

    >>> import numpy as np
    >>> query_rows(np.zeros((5, 3)), Direction.VIDEO_TO_TEXT).shape
    (3, 5)
    """
    similarities = matrix(similarities, "the similarities")
    return similarities if direction is Direction.TEXT_TO_VIDEO else similarities.T
