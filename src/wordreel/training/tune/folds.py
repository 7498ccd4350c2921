"""Which videos teach, which choose and which judge: always whole videos, never single captions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.training.tune.settings import Settings
from wordreel.types import Int64


@dataclass(frozen=True, eq=False)
class Fold:
    """Three sets of videos that share none."""

    learn: Int64
    choose: Int64
    judge: Int64


def folds(videos: int, settings: Settings) -> list[Fold]:
    """Every video judges once; of the others, a part chooses and the rest teaches.

    >>> one = folds(20, Settings())[0]
    >>> len(one.learn), len(one.choose), len(one.judge)
    (12, 4, 4)
    """
    order = np.random.default_rng(settings.seed).permutation(videos)
    parts = np.array_split(order, settings.folds)
    made = []
    for number, judge in enumerate(parts):
        rest = np.concatenate([part for other, part in enumerate(parts) if other != number])
        # Begin elsewhere in each fold, so that not the same videos choose again and again.
        rest = np.roll(rest, number * len(rest) // settings.folds)
        many = max(round(settings.choosing * len(rest)), 1)
        made.append(Fold(np.sort(rest[many:]), np.sort(rest[:many]), np.sort(judge)))
    return made
