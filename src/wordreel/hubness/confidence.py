"""Confidence of hits: a score becomes a probability that can be compared across queries and cut off.

The bank says how unusual a score is for an item, t(q, v) (see `standard_score`). A sample of the videos says
how far scores of the query lie apart, by their deviation e. The best videos say how crowded the top is, and
the library how many videos compete:

    p(q, v) = 1 / (1 + exp(toll + growth · g + crowd · c − height · t − likeness · s))

    c = log Σⱼ exp((sⱼ − s) / (NEAR · e)) over the CROWD best videos
    g = log((n + FEW) / (USUAL_COUNT + FEW)), with n at most MOST_COUNT

A hit with many equals is less sure than a lone one; c is 0 for a hit far ahead of all others. `likeness`
counts the score itself, for a model whose similarities mean the same in every library; it is 0 for models of
unknown scale. **A confidence of 0.5 means: about half of the hits like this one are right.** The five numbers
are a `Calibration`: a logistic regression on captions whose video is known, on queries without an answer, and
on galleries of several sizes (`studies/confidence.py`). For one query and item, p never falls as the score
rises.

e is drawn to that of a bank query (USUAL · r̄) as if by PRIOR more videos, so that a library of a few videos
is judged by what the bank knows. Cost: one pass over the bank to fit; a query needs its scores with the
sample and the best videos, not with every item.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import LARGEST, Similarities, widen
from wordreel.hubness.standard_score import FURTHEST, StandardScore, levels, median
from wordreel.hubness.state import State
from wordreel.types import Array, Calibration, Float32, Float64, Int64

PRIOR = 10  # videos that the bank's idea of a query counts for
USUAL = 0.6  # the deviation of scores over the videos, in r̄, of a query for nothing in particular
CROWD = 10  # best videos that c looks at
NEAR = 0.3  # deviations that set a hit apart from the next one
FEW = 50
USUAL_COUNT = 400  # videos at which g is 0
MOST_COUNT = 2_000  # videos beyond which g stays: calibrations are fitted on 100 to 1,000
AT_ONCE = 1 << 17  # confidences computed at a time


CHECKED = Calibration(height=1.595, crowd=0.4, growth=0.886, likeness=0.0, toll=4.56)
"""For models that have no calibration of their own: fitted to the default model with likeness held at 0, the
way `studies/confidence.py` fits, on a part of its collections."""


@dataclass(frozen=True, eq=False)
class Rivals:
    """Describe what competes for each query.

    `count` videos, with the deviation `spread [q]` of their scores, and the scores of the
    `best [q, at most CROWD]`, in any order.
    """

    count: int
    spread: Float64
    best: Float64

    def some(self, rows: slice) -> Rivals:
        """Return those of some of the queries; rivals of one query are those of all."""
        return self if len(self.spread) == 1 else Rivals(self.count, self.spread[rows], self.best[rows])


@dataclass(frozen=True, eq=False)
class Confidence:
    """A fitted bank. Frozen."""

    state: State
    calibration: Calibration = CHECKED

    @staticmethod
    def fit(
        blocks: Similarities, calibration: Calibration = CHECKED, *, threads: int | None = None
    ) -> Confidence:
        """Gather `[bank, items]` similarities: an array, memory map, source or row blocks.

        >>> bank = np.random.default_rng(0).normal(0, 0.1, (500, 3))
        >>> Confidence.fit(bank).of(np.array([0.1, 2.0, 0.1])).round(2)
        array([0., 1., 0.], dtype=float32)
        """
        return Confidence(StandardScore().fit(blocks, threads=threads), calibration)

    @property
    def items(self) -> int:
        return self.state.items

    @cached_property
    def _levels(self) -> tuple[Float64, Float64]:
        return levels(self.state)

    @cached_property
    def _usual_spread(self) -> float:
        """Of the scores of a query; the median of a million items takes longer than the rest of it."""
        return USUAL * median(self._levels[1])

    def _unusual(self, scores: NDArray[Any], items: Int64 | None) -> Float64:
        """t(q, v) for checked scores `[q, n]` or `[n]`; `items`, `[n]` or `[q, n]`, name the item of each."""
        centre, scale = self._levels
        if items is None:
            if scores.shape[-1] != self.items:
                raise HubnessError(
                    f"{scores.shape[-1]} scores were given for {self.items} items; name them in `items`"
                )
        else:
            at = self._items(items, scores.shape)
            centre, scale = centre[at], scale[at]
        return np.asarray(np.clip((scores - centre) / scale, -FURTHEST, FURTHEST))

    def rivals(self, scores: Array, *, best: Array | None = None, count: int | None = None) -> Rivals:
        """Describe the competition of each query, from its plain scores with a sample of the videos.

        By default the scores are those of all videos, and the CROWD `best` and the `count` follow from them.
        """
        scores = np.atleast_2d(self._scores(scores))
        top = scores if best is None else np.atleast_2d(self._scores(best))
        variance = np.empty(len(scores))
        for rows, part, _ in _pieces(scores, None):
            variance[rows] = part.var(axis=1, dtype=np.float64)
        weight = scores.shape[1] / (scores.shape[1] + PRIOR)
        spread = np.sqrt(weight * variance + (1 - weight) * self._usual_spread**2)
        rest = max(0, top.shape[1] - CROWD)
        nearest = np.partition(top, rest, axis=1)[:, rest:].astype(np.float64)
        return Rivals(scores.shape[1] if count is None else count, spread, nearest)

    def features(self, scores: Array, items: Int64 | None = None, rivals: Rivals | None = None) -> Float64:
        """Return what the calibration weighs, `[q, n, 4]`: t, −c, −g and s of scores `[q, n]`."""
        scores = np.atleast_2d(self._scores(scores))
        t = self._unusual(scores, items)
        known = self.rivals(scores) if rivals is None else rivals
        if np.shape(known.spread) not in ((len(t),), (1,)) or len(known.best) != len(known.spread):
            raise HubnessError(f"{len(known.spread)} rivals were given for {len(t)} queries")
        own = scores.astype(np.float64)
        ahead = (known.best.T[:, :, None] - own) / (NEAR * known.spread[:, None])  # [CROWD, q, n]
        crowd = np.exp(np.clip(ahead, -FURTHEST, FURTHEST)).sum(axis=0)
        growth = np.log((min(known.count, MOST_COUNT) + FEW) / (USUAL_COUNT + FEW))
        return np.stack([t, -np.log(crowd), np.full(t.shape, -growth), own], axis=-1)

    def of(self, scores: Array, items: Int64 | None = None, rivals: Rivals | None = None) -> Float32:
        """Compute p(q, v), float32 of the shape of `scores`, in [0, 1].

        Without `rivals`, the scores are taken to be all that competes: whole rows. For some items of a row,
        pass `rivals` of the whole row. Videos of several items: pass the score of each video's best item, and
        which item that is in `items [q, videos]`.
        """
        scores = self._scores(scores)
        rows_of = np.atleast_2d(scores)
        confidences = np.empty(rows_of.shape, np.float32)
        for rows, part, at in _pieces(rows_of, items):
            known = self.rivals(part) if rivals is None else rivals.some(rows)
            confidences[rows] = probabilities(self.features(part, at, known), self.calibration)
        return confidences.reshape(scores.shape)

    def _items(self, items: Int64, shape: tuple[int, ...]) -> Int64:
        at = np.asarray(items)
        if at.shape not in (shape, shape[-1:]) or at.dtype.kind not in "iu":
            raise HubnessError(
                f"`items` are item numbers of the shape {shape} or {shape[-1:]}, not {at.shape}"
            )
        if at.size and (at.min() < 0 or at.max() >= self.items):
            raise HubnessError(f"`items` must be item numbers from 0 to {self.items - 1}")
        return at.astype(np.int64)

    def _scores(self, scores: Array) -> NDArray[Any]:
        scores = np.asarray(scores)
        if scores.ndim not in (1, 2) or scores.shape[-1] == 0 or scores.dtype.kind not in "fiu":
            raise HubnessError(f"scores are numbers [queries, items] or [items], not of shape {scores.shape}")
        scores = widen(scores)
        if not (np.abs(scores) <= LARGEST).all():
            raise HubnessError("scores must be finite; leave out the embeddings that are not")
        return scores


def _pieces(scores: Array, items: Int64 | None) -> list[tuple[slice, Array, Int64 | None]]:
    """Split scores by rows, with the item numbers that belong to them."""
    step = max(1, AT_ONCE // scores.shape[1])
    whole = items is None or np.ndim(items) < 2
    return [
        (rows, scores[rows], items if whole or items is None else items[rows])
        for rows in (slice(start, start + step) for start in range(0, len(scores), step))
    ]


def probabilities(features: Float64, calibration: Calibration) -> Float64:
    """Compute p from `features [..., 4]`."""
    *slopes, toll = astuple(calibration)
    height = features @ np.array(slopes) - toll
    return np.asarray(1 / (1 + np.exp(-np.clip(height, -FURTHEST, FURTHEST))), np.float64)
