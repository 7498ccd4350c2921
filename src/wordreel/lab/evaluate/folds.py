"""Folds of a test set: COCO's 1k figures are the mean over five folds of 1,000 of its 5,000 pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.retrieval.caption_ranks import Captions


@dataclass(frozen=True)
class Fold:
    """Neighbouring videos `columns` with their captions `rows`: a test set of its own."""

    rows: slice
    columns: slice
    captions: Captions


def split_folds(captions: Captions, folds: int) -> list[Fold]:
    """Cut a test set into `folds` parts with equally many videos, in their order.

    >>> from wordreel.retrieval.caption_ranks import arrange
    >>> [fold.rows for fold in split_folds(arrange(4, 12), 2)]
    [slice(0, 6, None), slice(6, 12, None)]
    """
    if captions.videos % folds:
        raise EvaluationError(f"{captions.videos} items cannot be cut into {folds} folds of one size")
    size = captions.videos // folds
    edges = np.searchsorted(captions.owner, np.arange(0, captions.videos + 1, size)).tolist()
    return [
        Fold(
            slice(edges[n], edges[n + 1]),
            slice(n * size, (n + 1) * size),
            Captions(
                size,
                captions.owner[edges[n] : edges[n + 1]] - n * size,
                captions.valid[edges[n] : edges[n + 1]],
            ),
        )
        for n in range(folds)
    ]
