"""How sure a hit is: a score becomes a probability that can be compared across queries and cut off.

The bank says how unusual a score is for an item, t(q, v) (see `unusual`). The gallery says how unusual that
is for the query, whose t over the n items (or videos) that compete have the mean m and the deviation d:

    u(q, v) = (t(q, v) − m_q) / d_q + LEVEL · t(q, v)      p(q, v) = 1 / (1 + exp(toll + g(n) − slope · u))

The first term tells a query for which one item stands out from one that likes everything a little; the second
keeps the height of the score itself. Items do not share one probability: a query may have many answers.
**A confidence of 0.5 means: about half of the hits like this one are right.** `slope` and `toll` are a
logistic regression of right on u, fitted to hits that are known to be right or wrong.

The more items there are, the higher the best of them stands by chance, while the answers among them grow too:
g(n) = ½ log((n + FEW) / (USUAL_COUNT + FEW)) goes half of the way from "answers grow with the items" to "one
answer".

m and d are drawn to those of a bank query (0 and USUAL) as if by PRIOR more items, so that a gallery of a few
videos is judged by what the bank knows. Cost: one pass over the bank to fit, O(n) per query to use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import LARGEST, Array, Blocks, Ids, widen
from wordreel.hubness.standard_score import FURTHEST, StandardScore, levels
from wordreel.hubness.state import State
from wordreel.types import Calibration, Float32, Float64

LEVEL = 0.3  # of the height of t against how far it stands out
PRIOR = 10  # items that the bank's idea of a query counts for
USUAL = 0.6  # the deviation of t over the items, of a query that asks for nothing in particular
GROWTH = 0.5  # of the logarithm of the number of items that compete
FEW = 50
USUAL_COUNT = 400  # items at which the calibration holds as it is
AT_ONCE = 1 << 20  # confidences worked out at a time


CHECKED = Calibration(slope=1.1, toll=6.1)
"""Fitted to the ten best hits of MSVD training captions with the `bridge` model, where a video counts as
right if its own captions say the same (the five nearest have a mean sentence cosine of 0.7)."""


@dataclass(frozen=True, eq=False)
class Rivals:
    """What competes for each query: how many, and the `mean [q]` and `deviation [q]` of their t."""

    count: int
    mean: Float64
    deviation: Float64

    @property
    def growth(self) -> float:
        """g(n)."""
        return GROWTH * float(np.log((self.count + FEW) / (USUAL_COUNT + FEW)))


@dataclass(frozen=True, eq=False)
class Confidence:
    """A fitted bank. Frozen: a change of the bank or the gallery gives a new one (see `State`)."""

    state: State
    calibration: Calibration = CHECKED

    @staticmethod
    def fit(blocks: Blocks, calibration: Calibration = CHECKED, *, threads: int | None = None) -> Confidence:
        """Gather `[bank, items]` similarities: an array, memory map, source or row blocks.

        >>> bank = np.random.default_rng(0).normal(0, 0.1, (500, 3))
        >>> Confidence.fit(bank).of(np.array([0.1, 2.0, 0.1])).round(2)
        array([0.01, 0.97, 0.01], dtype=float32)
        """
        return Confidence(StandardScore().fit(blocks, threads=threads), calibration)

    @property
    def items(self) -> int:
        return self.state.items

    @cached_property
    def _levels(self) -> tuple[Float64, Float64]:
        self.state.check_fresh()
        return levels(self.state)

    @property
    def centre(self) -> Float32:
        """μᵥ, `[items]`."""
        return self._levels[0].astype(np.float32)

    @property
    def scale(self) -> Float32:
        """What t is divided by, `[items]`."""
        return self._levels[1].astype(np.float32)

    def unusual(self, scores: Array, items: Ids | None = None) -> Float64:
        """t(q, v) for scores `[q, n]` or `[n]`; `items`, `[n]` or `[q, n]`, say which item each is of."""
        scores = self._scores(scores)
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

    def rivals(self, scores: Array, items: Ids | None = None) -> Rivals:
        """The competition of each query, from the scores of everything that may be an answer to it."""
        scores = np.atleast_2d(self._scores(scores))
        mean, deviation = np.empty(len(scores)), np.empty(len(scores))
        for rows, part, at in _pieces(scores, items):
            t = self.unusual(part, at)
            weight = t.shape[1] / (t.shape[1] + PRIOR)
            mean[rows] = weight * t.mean(axis=1)
            deviation[rows] = np.sqrt(weight * t.var(axis=1) + (1 - weight) * USUAL**2)
        return Rivals(scores.shape[1], mean, deviation)

    def standing(self, scores: Array, items: Ids | None = None, rivals: Rivals | None = None) -> Float64:
        """u(q, v) for scores `[q, n]`; without `rivals`, the scores are taken to be all that competes."""
        t = self.unusual(np.atleast_2d(scores), items)
        known = self.rivals(scores, items) if rivals is None else rivals
        if np.shape(known.mean) not in ((len(t),), (1,)):
            raise HubnessError(f"{len(known.mean)} rivals were given for {len(t)} queries")
        return np.asarray((t - known.mean[:, None]) / known.deviation[:, None] + LEVEL * t)

    def of(self, scores: Array, items: Ids | None = None, rivals: Rivals | None = None) -> Float32:
        """p(q, v), float32 of the shape of `scores`, in [0, 1].

        Without `rivals`, the scores are taken to be all that competes: whole rows. For some items of a row,
        pass `rivals` of the whole row. Videos of several items: pass the score of each video's best item, and
        which item that is in `items [q, videos]`.
        """
        scores = self._scores(scores)
        rows_of = np.atleast_2d(scores)
        confidences = np.empty(rows_of.shape, np.float32)
        for rows, part, at in _pieces(rows_of, items):
            some = self.rivals(part, at) if rivals is None else rivals
            if rivals is not None and len(rivals.mean) > 1:
                some = Rivals(rivals.count, rivals.mean[rows], rivals.deviation[rows])
            toll = self.calibration.toll + some.growth
            height = self.calibration.slope * self.standing(part, at, some) - toll
            confidences[rows] = 1 / (1 + np.exp(-np.clip(height, -FURTHEST, FURTHEST)))
        return confidences.reshape(scores.shape)

    def add(self, rows: Blocks) -> Confidence:
        """With more queries in the bank."""
        return replace(self, state=self.state.add(rows))

    def merge(self, other: Confidence) -> Confidence:
        """Both banks together, over the same gallery; the calibration stays."""
        return replace(self, state=self.state.merge(other.state))

    def drop(self, rows: Array, refit: Callable[[Ids], Blocks] | None = None) -> Confidence:
        """Without some queries, given the rows they were fitted with."""
        return replace(self, state=self.state.drop(rows, refit=refit))

    def extend(self, columns: Blocks) -> Confidence:
        """With new gallery items at the end, given `[bank, new]` similarities."""
        return replace(self, state=self.state.extend(columns))

    def remove(self, columns: Ids) -> Confidence:
        """Without some gallery items."""
        return replace(self, state=self.state.remove(columns))

    def refit_columns(self, columns: Ids, blocks: Blocks) -> Confidence:
        """Fit items that went stale again, from `[bank, len(columns)]` similarities."""
        return replace(self, state=self.state.refit_columns(columns, blocks))

    def save(self, path: Path) -> None:
        """Write one safetensors file, as a whole or not at all."""
        from wordreel.hubness.state_file import save_state

        numbers = np.array([self.calibration.slope, self.calibration.toll])
        save_state(self.state, path, {"calibration": numbers})

    @staticmethod
    def load(path: Path) -> Confidence:
        """Read what `save` wrote. Nothing in the file is executed."""
        from wordreel.hubness.state_file import load_state, read_extra

        state, numbers = load_state(path), read_extra(path).get("calibration", np.empty(0))
        if not isinstance(state.method, StandardScore) or numbers.shape != (2,):
            raise HubnessError(f"{path} is not a confidence; fit the bank again")
        return Confidence(state, Calibration(*numbers.tolist()))

    def _items(self, items: Ids, shape: tuple[int, ...]) -> Ids:
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


def _pieces(scores: Array, items: Ids | None) -> list[tuple[slice, Array, Ids | None]]:
    """Some rows at a time, with the item numbers that belong to them."""
    step = max(1, AT_ONCE // scores.shape[1])
    whole = items is None or np.ndim(items) < 2
    return [
        (rows, scores[rows], items if whole or items is None else items[rows])
        for rows in (slice(start, start + step) for start in range(0, len(scores), step))
    ]
