"""`Index`: what every back end takes and returns. One file per back end.

Items are rows, numbered from 0 as they were embedded; a row never changes. New items are new rows at the end
(`PartedIndex` searches those that a built index does not hold yet), and a deleted item is a row that is no
longer `allowed`.

A query bank gives an index one number per item and, for the gated methods, one bit. A corrected score is
s(q, v) − bias[v]: the inner product of `[v, −bias]` and `[q, 1]`. A gated correction holds for the queries
whose plain best item is `active`; the others stay plain.

Within a group of items that have the same experts available, the mixture similarity is one inner product, of
the item and the query rescaled for that group (`availability_groups`, `group_queries`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wordreel.models.similarity import divide, flatten_queries
from wordreel.progress import ProgressCallback
from wordreel.types import Bool, Float32, Int64
from wordreel.util.lru_cache import LRUCache

T = TypeVar("T")

DERIVED = 16  # filters and biases of which an index holds what it made of them


@dataclass(frozen=True, eq=False)
class Correction:
    """`bias [n]` and, for gated methods, `active [n]`, in the order of the index's items."""

    bias: Float32
    active: Bool | None = None

    def fits(self, items: int) -> bool:
        return self.bias.shape == (items,) and (self.active is None or self.active.shape == (items,))


@dataclass(frozen=True, eq=False)
class Rest:
    """What a search says of the items that it does not return: none but `rows` scores above `most`."""

    rows: Int64
    most: float


@dataclass(frozen=True, eq=False)
class Best:
    """The best items of each query, best first. Rows past the end of a short gallery are -1, scores -inf."""

    rows: Int64  # [queries, k]
    scores: Float32  # [queries, k]
    rests: Sequence[Rest] | None = None  # of each query, where more is known than that they are not as good

    def rest(self, query: int) -> Rest:
        """Return an upper bound on the scores of items not returned. Reliable only for exact indexes."""
        if self.rests is not None:
            return self.rests[query]
        last = float(self.scores[query, -1]) if self.rows.shape[1] else np.inf
        return Rest(self.rows[query], last)


@dataclass(frozen=True, eq=False)
class IndexResult(Best):
    """Hold the best items of each query.

    Also whether the correction held for it, and the plain best where the search found them on its way.
    """

    corrected: Bool = field(kw_only=True)  # [queries]
    plain: Best | None = field(default=None, kw_only=True)


class Index(ABC):
    """Items to search by similarity, with filters and a correction. Immutable; threads may share it."""

    name: ClassVar[str]  # of the back end, as messages and settings spell it

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether `best` returns the true best items; otherwise most of them (see `index.cached`)."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows, deleted ones included."""

    @abstractmethod
    def scores(self, vectors: Float32, weights: Float32, rows: slice | NDArray[np.int64]) -> Float32:
        """Return plain scores `[queries, len(rows)]` of some items, exact whatever the index."""

    @abstractmethod
    def best(
        self,
        vectors: Float32,
        weights: Float32,
        k: int,
        allowed: Bool | None = None,
        bias: Float32 | None = None,
    ) -> Best:
        """Return the `k` best items by s(q, v) − `bias [n]`.

        For `vectors [q, experts, dim]` and `weights [q, experts]`.

        Only the rows `allowed [n]` count, as if there were no others: a filter never costs results. Returned
        scores are exact, with the bias subtracted; of equal scores the lower row comes first.
        """

    def search(
        self,
        vectors: Float32,
        weights: Float32,
        k: int,
        allowed: Bool | None = None,
        correction: Correction | None = None,
    ) -> IndexResult:
        """Return the `k` best items by corrected score: as `best`, with the gate of a gated correction.

        A gated correction costs a second search for the queries that it holds for.
        """
        check_correction(correction, len(self))

        def best(some: slice | Bool, bias: Float32 | None) -> Best:
            return self.best(vectors[some], weights[some], k, allowed, bias)

        return search_corrected(best, len(vectors), correction)


def search_corrected(
    best: Callable[[slice | Bool, Float32 | None], Best], queries: int, correction: Correction | None
) -> IndexResult:
    """Search plainly, corrected or behind a gate: `best` searches for some of the queries, with a bias."""
    every = slice(None)
    if correction is None or correction.active is None:
        found = best(every, None if correction is None else correction.bias)
        held = np.full(queries, correction is not None)
        plain = found if correction is None else None
        return IndexResult(found.rows, found.scores, found.rests, corrected=held, plain=plain)
    plain = best(every, None)
    opened = gate(plain, correction.active)
    if not opened.any():
        return IndexResult(plain.rows, plain.scores, plain.rests, corrected=opened, plain=plain)
    fixed = best(opened, correction.bias)
    rows, scores = plain.rows.copy(), plain.scores.copy()
    rows[opened], scores[opened] = fixed.rows, fixed.scores
    rests = [plain.rest(query) for query in range(queries)]
    for number, query in enumerate(np.flatnonzero(opened)):
        rests[query] = fixed.rest(number)
    return IndexResult(rows, scores, rests, corrected=opened, plain=plain)


class DerivedArrays(Generic[T]):
    """What is made of arrays over all rows: the same objects each time for the same array."""

    def __init__(self, derive: Callable[[NDArray[Any]], list[T]], parts: int) -> None:
        self._derive, self._parts = derive, parts
        # An array is held with what is made of it, so that no other array can have the same id.
        self._known: LRUCache[int, tuple[object, list[T]]] = LRUCache(DERIVED)

    def of(self, whole: NDArray[Any] | None) -> list[T] | list[None]:
        """Return what is made of an array, for each part of the index; Nones of None."""
        if whole is None:
            return [None] * self._parts
        known = self._known.get(id(whole))
        if known is None:
            known = whole, self._derive(whole)
            self._known.put(id(whole), known)
        return known[1]


@dataclass(frozen=True, eq=False)
class QuerySample:
    """Queries like those to come, such as a bank's, on which recall is measured."""

    vectors: Float32  # [q, experts, dim]
    weights: Float32  # [q, experts]


class IndexBuilder(Protocol):
    """Builds an index into a folder once and opens it from there; one object per back end with files.

    The folder is a cache: its owner (`index.cached`) builds into a new folder, renames it when complete, and
    remembers which rows it holds and how large its files are. A builder only writes and reads its files.
    """

    @property
    def name(self) -> str:
        """Return the name of the kind of index."""
        ...

    def build(
        self, folder: Path, vectors: Float32, available: Bool, on_progress: ProgressCallback | None = None
    ) -> None:
        """Write the index of memory-mapped `vectors [n, experts, dim]`, zeros where not `available`."""
        ...

    def open(self, folder: Path, vectors: Float32, available: Bool) -> Index:
        """Open the index over the same rows, in milliseconds: files are mapped, not read.

        Raises:
            OSError, ValueError: The files are not what `build` wrote; the index is built again.
        """
        ...


class PartedIndex(Index):
    """Several indexes over consecutive rows, searched as one: what is built, and the rows added since."""

    name = "parted"

    def __init__(self, parts: Sequence[Index]) -> None:
        self.parts = tuple(parts)
        self._edges = np.cumsum([0, *map(len, self.parts)])
        edges = list(pairwise(self._edges.tolist()))
        self._slices = DerivedArrays[NDArray[Any]](
            lambda whole: [whole[low:high] for low, high in edges], len(self.parts)
        )

    @property
    def exact(self) -> bool:
        return all(part.exact for part in self.parts)

    def __len__(self) -> int:
        return int(self._edges[-1])

    def scores(self, vectors: Float32, weights: Float32, rows: slice | NDArray[np.int64]) -> Float32:
        wanted = np.arange(len(self))[rows]
        scores = np.empty((len(vectors), len(wanted)), np.float32)
        for part, low, high in zip(self.parts, self._edges, self._edges[1:], strict=False):
            inside = (wanted >= low) & (wanted < high)
            if inside.any():
                scores[:, inside] = part.scores(vectors, weights, wanted[inside] - low)
        return scores

    def best(
        self,
        vectors: Float32,
        weights: Float32,
        k: int,
        allowed: Bool | None = None,
        bias: Float32 | None = None,
    ) -> Best:
        found = []
        own = zip(self.parts, self._edges, self._slices.of(allowed), self._slices.of(bias), strict=False)
        for part, low, some, biases in own:
            one = part.best(vectors, weights, k, some, biases)
            rests = [one.rest(query) for query in range(len(vectors))]
            moved = [Rest(rest.rows[rest.rows >= 0] + low, rest.most) for rest in rests]
            found.append(Best(np.where(one.rows < 0, -1, one.rows + low), one.scores, moved))
        return merge_best(found, k)


def check_correction(correction: Correction | None, items: int) -> None:
    """Raise a ValueError unless a correction is of so many items."""
    if correction is not None and not correction.fits(items):
        raise ValueError(f"a correction of {len(correction.bias)} items does not fit {items} items")


def gate(plain: Best, active: Bool) -> Bool:
    """Return whether the plain best item of each query is active, `[queries]`."""
    if not len(active) or not plain.rows.shape[1]:
        return np.zeros(len(plain.rows), bool)
    first = plain.rows[:, 0]
    return np.asarray((first >= 0) & active[first])


def merge_best(parts: Sequence[Best], k: int) -> Best:
    """Return the `k` best of several lists over different items; of equal scores the lower row first.

    >>> one = Best(np.array([[4, 0]]), np.array([[0.9, 0.2]], np.float32))
    >>> two = Best(np.array([[1, -1]]), np.array([[0.9, -np.inf]], np.float32))
    >>> merge_best([one, two], 3).rows.tolist()
    [[1, 4, 0]]
    """
    rows = np.concatenate([part.rows for part in parts], axis=1)
    scores = np.concatenate([part.scores for part in parts], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    rows, scores = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
    short = k - rows.shape[1]
    if short > 0:
        rows = np.pad(rows, ((0, 0), (0, short)), constant_values=-1)
        scores = np.pad(scores, ((0, 0), (0, short)), constant_values=-np.inf)
    rests = None
    if all(part.rests is not None for part in parts):
        rests = [merge_rests([part.rest(query) for part in parts]) for query in range(len(rows))]
    return Best(np.where(np.isneginf(scores), -1, rows), scores.astype(np.float32, copy=False), rests)


def merge_rests(parts: Sequence[Rest]) -> Rest:
    """Return what several searches over different items say together."""
    return Rest(np.concatenate([part.rows for part in parts]), max(part.most for part in parts))


def availability_groups(available: Bool) -> list[tuple[Bool, Int64]]:
    """Return each pattern of available experts `[experts]` with its rows, in order; at most 2^experts groups.

    >>> groups = availability_groups(np.array([[True, True], [True, False], [True, True]]))
    >>> [(pattern.tolist(), rows.tolist()) for pattern, rows in groups]
    [([True, False], [1]), ([True, True], [0, 2])]
    """
    if not len(available):
        return []
    bits = 1 << np.arange(available.shape[1] - 1, -1, -1, dtype=np.int64)
    codes = available @ bits
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return [(available[rows[0]], rows) for rows in np.split(order, starts[1:])]


def group_queries(vectors: Float32, weights: Float32, pattern: Bool) -> Float32:
    """Return queries `[q, experts · dim]` whose inner product with an item of this pattern is the similarity.

    Zeros where no expert is both wanted and available, as the similarity is 0 there.

    >>> q, w = np.ones((1, 2, 1), np.float32), np.array([[1, 3]], np.float32)
    >>> group_queries(q, w, np.array([True, False])).tolist()
    [[1.0, 0.0]]
    """
    used = weights * pattern
    total = used.sum(axis=1, keepdims=True)
    return flatten_queries(vectors, divide(used, np.broadcast_to(total, used.shape)))
