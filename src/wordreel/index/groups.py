"""An index of one part per pattern of available experts, in which the similarity is one inner product.

`GroupedIndex` rescales the queries for each group, searches the groups, largest first, and merges their best.
The k-th score so far is the floor of the next group: what is certainly below it is not looked at. Groups of
few items, and filters that leave few, are scored directly from the full vectors.

Scores are inner products of the float32 vectors, summed in float64.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.index.base import (
    Best,
    DerivedArrays,
    Index,
    QuerySample,
    Rest,
    availability_groups,
    group_queries,
    merge_rests,
)
from wordreel.index.exact import ExactIndex
from wordreel.types import Bool, Float32, Float64, Int64

FEW = 1_024  # allowed items that are scored directly
SMALL = 16_384  # items of a group of which nothing is said that were not returned
BLOCK = 1_024  # items scored at once
LAYOUT, ROWS = "groups.json", "rows.bin"


@dataclass(frozen=True, eq=False)
class Penalty:
    """What is subtracted from the items' scores: a bias, infinity for items that are not allowed."""

    items: int
    bias: Float32 | None = None  # [items]; the same array whatever the filter
    allowed: Bool | None = None  # [items]; None if all items are

    def of(self, places: Int64 | slice) -> Float32:
        """Return the penalties of some items."""
        bias = np.float32(0) if self.bias is None else self.bias[places]
        return np.where(True if self.allowed is None else self.allowed[places], bias, np.float32(np.inf))

    @cached_property
    def largest(self) -> float:
        """The largest finite penalty, absolute."""
        return 0.0 if self.bias is None else float(np.abs(self.bias).max(initial=0))

    @cached_property
    def count(self) -> int:
        """How many items are allowed."""
        return self.items if self.allowed is None else int(np.count_nonzero(self.allowed))


class GroupItems(Protocol):
    """Items of one pattern of available experts, searched by inner product."""

    def best(self, query: Float32, best: Running, penalty: Penalty | None, floor: float) -> Rest | None:
        """Add the best items by ⟨q, v⟩ − penalty to `best`; items below the `floor` may be left out.

        Returns:
            What the items that were not added may score, by place, where that is known.
        """
        ...


@dataclass(frozen=True, eq=False)
class FullVectors:
    """The float32 vectors of a group in the memory-mapped matrix of all: exact scores of any of its items."""

    flat: Float32  # [all items, experts · dim]
    rows: Int64  # of the group's items
    columns: Int64 | None  # of its experts; None for all

    @classmethod
    def of(cls, vectors: Float32, pattern: Bool, rows: Int64) -> FullVectors:
        """Return a group's part of `vectors [n, experts, dim]`."""
        items, experts, dim = vectors.shape
        columns = None if pattern.all() else np.flatnonzero(np.repeat(pattern, dim))
        return cls(vectors.reshape(items, experts * dim), rows, columns)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dim(self) -> int:
        return int(self.flat.shape[1]) if self.columns is None else len(self.columns)

    def take(self, places: Int64 | slice) -> Float32:
        """Take items of the group `[len(places), group's experts · dim]`."""
        some = np.asarray(self.flat[self.rows[places]])
        return some if self.columns is None else np.ascontiguousarray(some[:, self.columns])

    def rescore(self, query: Float32, places: Int64, penalty: Penalty | None, best: Running) -> None:
        """Score some items exactly for one query `[dim]` and add them to its best.

        float32 finds the few that may be among the best, with a bound on its rounding; float64 scores those.
        """
        wide = query.astype(np.float64)
        length = float(np.linalg.norm(wide))
        for start in range(0, len(places), BLOCK):
            some = places[start : start + BLOCK]
            items = self.take(some)
            rough = items @ query
            doubt = (self.dim + 2) * 2.0**-23 * length * float(_row_norms(items).max())
            if penalty is not None:
                rough -= penalty.of(some)
                doubt += 2.0**-22 * penalty.largest
            edge = best.last
            if len(some) > best.k:
                edge = max(edge, float(np.partition(rough, -best.k)[-best.k]) - doubt)
            near = np.flatnonzero((rough >= edge - doubt) & (rough > -np.inf))
            scores = items[near].astype(np.float64) @ wide
            if penalty is not None:
                scores -= penalty.of(some[near])
            best.take(some[near], scores)


def _row_norms(items: Float32) -> Float32:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", items, items)), np.float32)


@dataclass(frozen=True, eq=False)
class DirectItems:
    """Few items, or the few of a group that are allowed: all of them are scored."""

    full: FullVectors

    def best(self, query: Float32, best: Running, penalty: Penalty | None, floor: float) -> Rest | None:
        allowed = None if penalty is None else penalty.allowed
        wanted = np.arange(len(self.full)) if allowed is None else np.flatnonzero(allowed)
        self.full.rescore(query, wanted, penalty, best)
        return None


class Running:
    """The best items of one query so far."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.places = np.zeros(0, np.int64)
        self.scores = np.zeros(0, np.float64)

    @property
    def last(self) -> float:
        """The k-th score; −inf while there are fewer."""
        return float(self.scores[-1]) if len(self.scores) == self.k else -np.inf

    def rest(self, floor: float, items: int) -> Rest:
        """Return what other items of a group may score, where those below the floor were left out.

        Of a small group nothing is said: a bound near the results would hold for all groups.
        """
        if items <= SMALL:
            return Rest(np.arange(items), -np.inf)
        return Rest(self.places, max(self.last, floor))

    def take(self, places: Int64, scores: Float64) -> None:
        """Add items with their scores; of equal scores the lower places stay."""
        better = scores >= self.last
        places = np.concatenate([self.places, places[better]])
        scores = np.concatenate([self.scores, scores[better]])
        order = np.lexsort((places, -scores))[: self.k]
        self.places, self.scores = places[order], scores[order]


@dataclass(frozen=True, eq=False)
class Group:
    """A pattern of available experts `[experts]`, its items, and how they are searched."""

    pattern: Bool
    full: FullVectors
    items: GroupItems


class GroupedIndex(Index):
    """Several groups of items, searched as one."""

    name = "grouped"

    def __init__(
        self, name: str, vectors: Float32, available: Bool, groups: Sequence[Group], *, exact: bool
    ) -> None:
        self.name = name  # type: ignore[misc]
        self._exact = exact
        self._full = ExactIndex(vectors, available)
        self._groups = sorted(groups, key=lambda group: -len(group.full))
        self._own = DerivedArrays[NDArray[Any]](self._cut, len(self._groups))

    @property
    def exact(self) -> bool:
        return self._exact

    def __len__(self) -> int:
        return len(self._full)

    def scores(self, vectors: Float32, weights: Float32, rows: slice | NDArray[np.int64]) -> Float32:
        return self._full.scores(vectors, weights, rows)

    def best(
        self,
        vectors: Float32,
        weights: Float32,
        k: int,
        allowed: Bool | None = None,
        bias: Float32 | None = None,
    ) -> Best:
        penalties = self._penalties(allowed, bias)
        rows = np.full((len(vectors), k), -1, np.int64)
        scores = np.full((len(vectors), k), -np.inf, np.float32)
        rests = []
        for query in range(len(vectors) if k and self._groups else 0):
            some = slice(query, query + 1)
            best, rest = self._best(QuerySample(vectors[some], weights[some]), k, penalties)
            rows[query, : len(best.places)], scores[query, : len(best.scores)] = best.places, best.scores
            rests.append(rest)
        return Best(rows, scores, rests or None)

    def _best(self, query: QuerySample, k: int, penalties: Sequence[Penalty | None]) -> tuple[Running, Rest]:
        """Return the best rows of one query, and what the others may score."""
        best, rests = Running(k), []
        for group, penalty in zip(self._groups, penalties, strict=True):
            few = penalty is not None and penalty.count <= FEW
            items = DirectItems(group.full) if few else group.items
            floor = float(np.nextafter(np.float32(best.last), np.float32(-np.inf)))
            own = Running(k)
            rest = items.best(own_queries(query, group.pattern, group.full)[0], own, penalty, floor)
            if rest is None:
                rest = own.rest(floor, len(group.full))
            best.take(group.full.rows[own.places], own.scores.astype(np.float32).astype(np.float64))
            rests.append(Rest(group.full.rows[rest.rows], rest.most))
        return best, merge_rests(rests)

    def _penalties(self, allowed: Bool | None, bias: Float32 | None) -> list[Penalty | None]:
        """Return the penalty of each group's items; None where nothing is subtracted."""
        if allowed is not None and allowed.all():
            allowed = None
        if allowed is None and bias is None:
            return [None] * len(self._groups)
        parts = zip(self._groups, self._own.of(bias), self._own.of(allowed), strict=True)
        return [Penalty(len(group.full), own, mine) for group, own, mine in parts]

    def _cut(self, whole: NDArray[Any]) -> list[NDArray[Any]]:
        alone = len(self._groups) == 1
        return [whole if alone else whole[group.full.rows] for group in self._groups]


def own_queries(queries: QuerySample, pattern: Bool, full: FullVectors) -> Float32:
    """Return queries `[q, group's experts · dim]` for the items of a group."""
    own = group_queries(queries.vectors, queries.weights, pattern)
    return own if full.columns is None else np.ascontiguousarray(own[:, full.columns])


def write_groups(folder: Path, available: Bool) -> None:
    """Write which items belong to which group."""
    groups = availability_groups(available)
    rows = np.concatenate([rows for _, rows in groups]) if groups else np.zeros(0, np.int64)
    rows.astype("<i8").tofile(folder / ROWS)
    layout = [{"pattern": pattern.tolist(), "count": len(rows)} for pattern, rows in groups]
    (folder / LAYOUT).write_text(json.dumps(layout))


def read_groups(folder: Path, vectors: Float32) -> Iterator[tuple[Bool, FullVectors]]:
    """Yield the groups that `write_groups` wrote, in its order; raise ValueError if not of `vectors`."""
    items, experts, _ = vectors.shape
    layout = json.loads((folder / LAYOUT).read_text())
    rows = map_file(folder / ROWS, np.int64, (items,))
    if items and (rows.min() < 0 or rows.max() >= items):
        raise ValueError(f"{folder / ROWS} names items that do not exist")
    start = 0
    for entry in layout:
        pattern = np.array(entry["pattern"], bool)
        if pattern.shape != (experts,):
            raise ValueError(f"{folder / LAYOUT} is of other experts")
        end = start + int(entry["count"])
        yield pattern, FullVectors.of(vectors, pattern, rows[start:end])
        start = end
    if start != items:
        raise ValueError(f"{folder / LAYOUT} is of {start} items, not of {items}")


def map_file(path: Path, dtype: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a whole file as a read-only array; raise ValueError if it has another size."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if path.stat().st_size != size:
        raise ValueError(f"{path} has {path.stat().st_size} bytes instead of {size}")
    if not size:
        return np.zeros(shape, dtype)
    return np.asarray(np.memmap(path, dtype, "r", shape=shape))
