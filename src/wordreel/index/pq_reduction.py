"""Which directions of an item are worth a code: linear maps of items and queries before quantisation.

The codes of v are to tell ⟨q, v⟩, so what counts is the error in directions in which queries vary. With C the
second moment of the queries in one expert's row, and S the covariance of the items there, let U and λ be the
eigenvectors and eigenvalues of C^½ S C^½. Then ⟨q, v⟩ = ⟨z, y⟩ for y = Uᵀ C^½ v and z = Uᵀ C^(−½) q. Queries
z have unit variance in every direction, so an error of y_j counts by its square alone, and λ_j is what
leaving y_j out costs (after Tepper et al., LeanVec, TMLR 2024, for queries unlike the items).

Reverse water-filling (Cover and Thomas, Elements of Information Theory, 10.3.3) gives direction j of any row
½ log₂(λ_j / θ) bits, none to those below θ. Directions that have four bits together share a code; what four
bits leave of the few that deserve more has codes of its own. There are as many codes as bring the expected
error of a score down to `ERROR` of what lies between good items and the very best, at most `most`: that is
what a search must tell apart, however far other items are away.

C is the mean of the queries' second moment and the items' own, since items are queries too (look-alikes).

Directions of nearly equal λ are turned among themselves at random. Eigenvectors tell kinds of items apart, so
a rare kind lies in few directions, far beyond what the others need there and what a code can say; turned, it
is a little of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.types import Float32, Float64, Int64

ERROR = 0.16  # of the distance between the scores of the best `GOOD` and `BEST` of the items
GOOD, BEST = 1 / 100, 1 / 1_600
ASKED = 256  # queries, at most, whose scores say how far that is
BITS = 4  # of a code
WIDTH = 8  # directions that share a code, at most
LIKE_ITEMS = 0.3  # the share of C that is the items' own
RIDGE = 1e-3  # of C in every direction
ALIKE = 2.0  # directions whose λ differ by less than this factor are turned together


@dataclass(frozen=True, eq=False)
class RowMap:
    """The directions of one expert's row that have a place among the reduced dimensions."""

    places: Int64  # [d]
    of_items: Float32  # [dim, d]
    of_queries: Float32  # [dim, d]


@dataclass(frozen=True, eq=False)
class Reduction:
    """`codes` codes of `WIDTH` dimensions each, zeros where fewer directions share a code.

    The first `coarse` of them are of directions, the others of what those leave of some: `refined [m, 2]` is
    the place of a direction and that of its remainder.
    """

    codes: int  # an even number, as is ...
    coarse: int
    rows: tuple[RowMap, ...]
    refined: Int64

    @classmethod
    def read(cls, entry: dict[str, Any], dim: int, numbers: Float32) -> Reduction:
        """From what `layout` and `numbers` returned; `dim` is that of an expert's row.

        Raises:
            ValueError: They are of something else.
        """
        codes, rows, start = int(entry["codes"]), [], 0
        for listed in entry["places"]:
            places = np.array(listed, np.int64).reshape(-1)
            size = dim * len(places)
            maps = numbers[start : start + 2 * size].reshape(2, dim, len(places))
            rows.append(RowMap(places, maps[0], maps[1]))
            start += 2 * size
        used = np.concatenate([row.places for row in rows])
        coarse, refined = int(entry["coarse"]), np.array(entry["refined"], np.int64).reshape(-1, 2)
        every = np.concatenate([used, refined[:, 1]])
        if not 2 <= coarse <= codes or coarse % 2 or codes % 2 or start != len(numbers):
            raise ValueError("these are not the directions of an index")
        inside = not len(used) or 0 <= used.min() <= used.max() < coarse * WIDTH
        fine = (
            not len(refined) or coarse * WIDTH <= refined[:, 1].min() <= refined[:, 1].max() < codes * WIDTH
        )
        if (
            len(np.unique(every)) != len(every)
            or not inside
            or not fine
            or not np.isin(refined[:, 0], used).all()
        ):
            raise ValueError("some directions have no place")
        return cls(codes, coarse, tuple(rows), refined)

    def layout(self) -> dict[str, Any]:
        """What is not an array of `numbers`, for JSON."""
        places = [row.places.tolist() for row in self.rows]
        return {
            "codes": self.codes,
            "coarse": self.coarse,
            "places": places,
            "refined": self.refined.tolist(),
        }

    def numbers(self) -> Float32:
        maps = [part.ravel() for row in self.rows for part in (row.of_items, row.of_queries)]
        return np.concatenate(maps).astype(np.float32)

    @staticmethod
    def size(entry: dict[str, Any], dim: int) -> int:
        """How many `numbers` belong to a layout."""
        return 2 * dim * sum(len(places) for places in entry["places"])

    @property
    def dim(self) -> int:
        return self.codes * WIDTH

    def items(self, vectors: Float32) -> Float32:
        """`[n, rows · dim]` to `[n, coarse · WIDTH]`."""
        return self._mapped(vectors, [row.of_items for row in self.rows], self.coarse * WIDTH)

    def remainder(self, items: Float32, near: Float32) -> Float32:
        """What coarse codes leave of reduced items, if they say `near`: `[n, (codes − coarse) · WIDTH]`."""
        left = np.zeros((len(items), self.dim - self.coarse * WIDTH), np.float32)
        own = self.refined[:, 0]
        left[:, self.refined[:, 1] - self.coarse * WIDTH] = items[:, own] - near[:, own]
        return left

    def queries(self, vectors: Float32) -> Float32:
        """Queries `[q, codes · WIDTH]`, whose inner products with what the codes say are near the scores."""
        reduced = self._mapped(vectors, [row.of_queries for row in self.rows], self.dim)
        reduced[:, self.refined[:, 1]] = reduced[:, self.refined[:, 0]]
        return reduced

    def _mapped(self, vectors: Float32, maps: Sequence[Float32], dim: int) -> Float32:
        reduced = np.zeros((len(vectors), dim), np.float32)
        start = 0
        for row, own in zip(self.rows, maps, strict=True):
            reduced[:, row.places] = vectors[:, start : start + len(own)] @ own
            start += len(own)
        return reduced


def fit_reduction(items: Float32, queries: Float32 | None, rows: int, most: int) -> Reduction:
    """Fit to a sample `items [n, rows · dim]` and to queries of the same width, if there are any.

    >>> rng = np.random.default_rng(0)
    >>> items = rng.normal(size=(200, 8)).astype(np.float32) * [1, 1, 1, 1, 1e-3, 1e-3, 1e-3, 1e-3]
    >>> reduction = fit_reduction(items.astype(np.float32), None, rows=2, most=4)
    >>> reduction.codes, [len(row.places) for row in reduction.rows]
    (4, [4, 0])
    """
    dim = items.shape[1] // rows
    parts = []
    for start in range(0, items.shape[1], dim):
        own = slice(start, start + dim)
        parts.append(_directions(items[:, own], None if queries is None else queries[:, own]))
    spread = np.concatenate([values for values, _, _ in parts])
    order = np.argsort(-spread, kind="stable")
    bits = _shared_bits(spread[order], ERROR * _distance(items, queries), most)
    groups, finer = _packed(np.minimum(bits, BITS)), _packed(bits - BITS)
    coarse = max(2, _even(groups))
    place = np.full(len(spread), -1, np.int64)
    place[order[: len(groups)]] = _places(groups)
    refined = np.stack([place[order[: len(finer)]], WIDTH * coarse + _places(finer)], axis=1)
    maps = []
    for number, (_, of_items, of_queries) in enumerate(parts):
        places = place[number * dim : (number + 1) * dim]
        kept = places >= 0
        maps.append(RowMap(places[kept], of_items[:, kept], of_queries[:, kept]))
    return Reduction(coarse + _even(finer), coarse, tuple(maps), refined)


def _distance(items: Float32, queries: Float32 | None) -> float:
    """How far the scores of good items are below those of the best, in the median of the queries."""
    own = queries is None or not len(queries)
    asked = items if queries is None or own else queries
    asked = asked[np.linspace(0, len(asked) - 1, min(ASKED, len(asked))).astype(np.int64)]
    scores = np.nan_to_num(asked @ items.T)
    last = scores.shape[1] - 1
    best, good = (min(int(own) + int(share * len(items)), last) for share in (BEST, GOOD))  # not itself
    ranked = -np.partition(-scores, (best, good), axis=1)
    return float(np.median(ranked[:, best] - ranked[:, good]))


def _directions(items: Float32, queries: Float32 | None) -> tuple[Float64, Float32, Float32]:
    """λ, largest first, and the maps of items and queries `[dim, dim]` of one row."""
    wide = np.nan_to_num(items.astype(np.float64))
    dim = wide.shape[1]
    energy = 1.0
    moment = _unit_trace(wide.T @ wide)
    if queries is not None and len(queries):
        asked = queries.astype(np.float64)
        energy = float(np.square(asked).sum(axis=1).mean())
        moment = (1 - LIKE_ITEMS) * _unit_trace(asked.T @ asked) + LIKE_ITEMS * moment
    values, vectors = np.linalg.eigh(energy * (moment + RIDGE / dim * np.eye(dim)))
    roots = np.sqrt(np.maximum(values, 1e-12))
    root, inverse = (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T
    centred = wide - wide.mean(axis=0)
    spread, turned = np.linalg.eigh(root @ (centred.T @ centred / len(wide)) @ root)
    spread, turned = _turned(np.maximum(spread[::-1], 0.0), turned[:, ::-1])
    return spread, (root @ turned).astype(np.float32), (inverse @ turned).astype(np.float32)


def _turned(spread: Float64, vectors: Float64) -> tuple[Float64, Float64]:
    """Eigenvalues, largest first, and eigenvectors, those of alike values turned among themselves."""
    rng = np.random.default_rng(0)
    values, turned, start = spread.copy(), vectors.copy(), 0
    while start < len(spread):
        end = start + int(np.searchsorted(-spread[start:], -spread[start] / ALIKE, side="right"))
        turn = np.linalg.qr(rng.normal(size=(end - start, end - start)))[0]
        turned[:, start:end] = vectors[:, start:end] @ turn
        values[start:end] = np.square(turn.T) @ spread[start:end]
        start = end
    order = np.argsort(-values, kind="stable")
    return values[order], turned[:, order]


def _unit_trace(moment: Float64) -> Float64:
    return moment / max(float(np.trace(moment)), 1e-30)


def _shared_bits(spread: Float64, error: float, most: int) -> Float64:
    """The bits of each direction, by falling variance `spread`, in at most so many codes."""
    top = float(spread[0]) + 1e-30

    def fits(level: float) -> bool:
        bits = _bits(spread, level)
        return _even(_packed(np.minimum(bits, BITS))) + _even(_packed(bits - BITS)) <= most

    # At the level θ, what is left of all directions adds up to the wanted error, or the codes are used up.
    wanted = _bisect(lambda level: float(np.minimum(spread, level).sum()) > error**2, top)
    return _bits(spread, max(wanted, _bisect(fits, top)))


def _even(groups: Int64) -> int:
    """How many codes there are, and one more if that is odd: two make a byte."""
    return (int(groups[-1]) + 2) // 2 * 2 if len(groups) else 0


def _places(groups: Int64) -> Int64:
    """The dimension of each direction, from its code."""
    return np.asarray(WIDTH * groups + np.arange(len(groups)) - np.searchsorted(groups, groups))


def _packed(bits: Float64) -> Int64:
    """The code of each direction that has some bits, in order: about `BITS` to a code."""
    groups, code, used, count = [], 0, 0.0, 0
    for own in bits[bits > 0].tolist():
        if count == WIDTH or (count and used + own / 2 > BITS):
            code, used, count = code + 1, 0.0, 0
        groups.append(code)
        used, count = used + own, count + 1
    return np.array(groups, np.int64)


def _bits(spread: Float64, level: float) -> Float64:
    """What the water level gives to each direction, at most two codes."""
    with np.errstate(divide="ignore"):
        return np.clip(0.5 * np.log2(spread / level), 0.0, 2 * BITS)


def _bisect(above: Callable[[float], bool], high: float) -> float:
    """The level below `high` at which `above` turns true, on a logarithmic scale."""
    low = high * 2.0**-60
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if above(middle) else (middle, high)
    return high
