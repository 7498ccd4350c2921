"""Which directions of an item are worth a code: linear maps of items and queries before quantisation.

The codes of v are to tell ⟨q, v⟩, so what counts is the error in directions in which queries vary. With C the
second moment of the queries in one expert's row, and S the covariance of the items there, let U and λ be the
eigenvectors and eigenvalues of C^½ S C^½. Then ⟨q, v⟩ = ⟨z, y⟩ for y = Uᵀ C^½ v and z = Uᵀ C^(−½) q. Queries
z have unit variance in every direction, so an error of y_j counts by its square alone, and λ_j is what
leaving y_j out costs (after Tepper et al., LeanVec, TMLR 2024, for queries unlike the items).

Reverse water-filling (Cover and Thomas, Elements of Information Theory, 10.3.3) gives direction j of any row
½ log₂(λ_j / θ) bits, none to those below θ. Directions that have four bits together share a code. There are
as many codes as bring the expected error of a score down to `ERROR` of what lies between good items and the
very best, at most `most`: that is what a search must tell apart, however far other items are away.

C is the mean of the queries' second moment and the items' own, since items are queries too (look-alikes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.types import Float32, Float64, Int64

ERROR = 0.25  # of the distance between the scores of the best `GOOD` and `BEST` of the items
GOOD, BEST = 1 / 100, 1 / 1_600
ASKED = 256  # queries, at most, whose scores say how far that is
BITS = 4  # of a code
WIDTH = 8  # directions that share a code, at most
LIKE_ITEMS = 0.3  # the share of C that is the items' own
RIDGE = 1e-3  # of C in every direction


@dataclass(frozen=True, eq=False)
class RowMap:
    """The directions of one expert's row that have a place among the reduced dimensions."""

    places: Int64  # [d]
    of_items: Float32  # [dim, d]
    of_queries: Float32  # [dim, d]


@dataclass(frozen=True, eq=False)
class Reduction:
    """`codes` codes of `WIDTH` dimensions each, zeros where fewer directions share a code."""

    codes: int  # an even number
    rows: tuple[RowMap, ...]

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
        if codes < 2 or codes % 2 or start != len(numbers) or len(np.unique(used)) != len(used):
            raise ValueError("these are not the directions of an index")
        if len(used) and not 0 <= used.min() <= used.max() < codes * WIDTH:
            raise ValueError("some directions have no place")
        return cls(codes, tuple(rows))

    def layout(self) -> dict[str, Any]:
        """What is not an array of `numbers`, for JSON."""
        return {"codes": self.codes, "places": [row.places.tolist() for row in self.rows]}

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
        """`[n, rows · dim]` to `[n, codes · WIDTH]`."""
        return self._mapped(vectors, [row.of_items for row in self.rows])

    def queries(self, vectors: Float32) -> Float32:
        """The same for queries: inner products with reduced items are near those of full vectors."""
        return self._mapped(vectors, [row.of_queries for row in self.rows])

    def _mapped(self, vectors: Float32, maps: Sequence[Float32]) -> Float32:
        reduced = np.zeros((len(vectors), self.dim), np.float32)
        start = 0
        for row, own in zip(self.rows, maps, strict=True):
            reduced[:, row.places] = vectors[:, start : start + len(own)] @ own
            start += len(own)
        return reduced


def fit_reduction(items: Float32, queries: Float32 | None, rows: int, most: int) -> Reduction:
    """Fit to a sample `items [n, rows · dim]` and to queries of the same width, if there are any.

    >>> rng = np.random.default_rng(0)
    >>> items = rng.normal(size=(200, 8)).astype(np.float32) * [1, 1, 1, 1, 1e-3, 1e-3, 1e-3, 1e-3]
    >>> reduction = fit_reduction(items.astype(np.float32), None, rows=2, most=8)
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
    groups = _grouped(spread[order], ERROR * _distance(items, queries), most)
    place = np.full(len(spread), -1, np.int64)
    inside = np.arange(len(groups)) - np.searchsorted(groups, groups)
    place[order[: len(groups)]] = WIDTH * groups + inside
    maps = []
    for number, (_, of_items, of_queries) in enumerate(parts):
        places = place[number * dim : (number + 1) * dim]
        kept = places >= 0
        maps.append(RowMap(places[kept], of_items[:, kept], of_queries[:, kept]))
    codes = int(groups[-1]) + 1 if len(groups) else 0
    return Reduction(max(2, codes + codes % 2), tuple(maps))


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
    spread, turned = np.maximum(spread[::-1], 0.0), turned[:, ::-1]
    return spread, (root @ turned).astype(np.float32), (inverse @ turned).astype(np.float32)


def _unit_trace(moment: Float64) -> Float64:
    return moment / max(float(np.trace(moment)), 1e-30)


def _grouped(spread: Float64, error: float, most: int) -> Int64:
    """The code of each direction that has one, by falling variance `spread`."""
    top = float(spread[0]) + 1e-30
    # At the level θ, what is left of all directions adds up to the wanted error, or the codes are used up.
    level = max(
        _bisect(lambda level: float(np.minimum(spread, level).sum()) > error**2, top),
        _bisect(lambda level: len(groups := _packed(_bits(spread, level))) == 0 or groups[-1] < most, top),
    )
    return _packed(_bits(spread, level))


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
    """What the water level gives to each direction, at most one code."""
    with np.errstate(divide="ignore"):
        return np.clip(0.5 * np.log2(spread / level), 0.0, BITS)


def _bisect(above: Callable[[float], bool], high: float) -> float:
    """The level below `high` at which `above` turns true, on a logarithmic scale."""
    low = high * 2.0**-60
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if above(middle) else (middle, high)
    return high
