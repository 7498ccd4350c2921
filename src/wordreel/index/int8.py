"""Certified exact search from 8-bit codes: a quarter of the memory traffic of float32, the same results.

An item v is stored as v̂ = s · c with whole numbers c in [-127, 127], its scale s, and its error ‖v − v̂‖. A
query q is rounded to q̂, 63 steps to each side. Then, by Cauchy and Schwarz,

    ⟨q, v⟩ ≤ ⟨q̂, v̂⟩ + ‖q − q̂‖ ‖v̂‖ + ‖q‖ ‖v − v̂‖ =: upper(v),

all of whose parts are known. A search computes the upper bound of every item by an integer matrix product,
scores the most promising items from the full vectors, and then every other item whose upper bound reaches
the k-th of those scores. No item that was left out can be among the k best, whatever the data: recall is 1.

Codes lie in tiles `[dim, items]`, as the integer kernels of onnxruntime want them: rounded queries have seven
bits, so that two products fit the 16-bit sums of processors without VNNI. Files are mapped, not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.index.base import Index, QuerySample
from wordreel.index.groups import (
    DirectItems,
    FullVectors,
    Group,
    GroupedIndex,
    Penalty,
    Running,
    map_file,
    read_groups,
    stack,
    write_groups,
)
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32, Float64, Int64

FEW = 256  # items of a group that are scored directly
TILE = 32_768  # items; a multiple of BLOCK
BLOCK = 64  # items whose largest bound is computed with them
STEPS = 63  # of a query to each side
ZERO = 64  # the code of 0 in a query
BATCH = 64  # queries multiplied at once ...
SINGLY = 6  # ... of which there are more than these: a few are faster one by one
BOUNDS = 1 << 25  # bounds in memory at the same time
EXTRA = 6  # blocks beyond k that are looked into first
RESCORED = 1_024  # items scored from the full vectors at once
FILES = ("codes.bin", "scale.bin", "sums.bin", "error.bin")
LIMITS = "limits.json"


@dataclass(frozen=True)
class _Builder:
    """`IndexBuilder` of certified exact search."""

    name: str = "int8"

    def build(
        self,
        folder: Path,
        vectors: Float32,
        available: Bool,
        queries: QuerySample | None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        write_groups(folder, available)
        large = [full for _, full in read_groups(folder, vectors) if has_codes(full)]
        write_codes(folder, large, on_progress)

    def open(self, folder: Path, vectors: Float32, available: Bool) -> Index:
        read = list(read_groups(folder, vectors))
        coded = iter(open_codes(folder, [full for _, full in read if has_codes(full)]))
        groups = [
            Group(pattern, full, next(coded) if has_codes(full) else DirectItems(full))
            for pattern, full in read
        ]
        return GroupedIndex(self.name, vectors, available, groups, exact=True)


BUILDER = _Builder()


def has_codes(full: FullVectors) -> bool:
    """Whether a group is large enough to be stored as codes."""
    return len(full) > FEW and full.dim > 0


def write_codes(
    folder: Path, groups: Sequence[FullVectors], on_progress: ProgressCallback | None = None
) -> None:
    """Write the codes of some groups."""
    done, limits = 0, []
    total = sum(map(len, groups))
    with ExitStack() as opened:
        files = [opened.enter_context((folder / name).open("wb")) for name in FILES]
        for full in groups:
            parts = []
            for start in range(0, len(full), TILE):
                items = full.take(slice(start, start + TILE))
                tile = quantise(items, _padded(len(items)))
                for array, file in zip(tile.arrays, files, strict=True):
                    array.tofile(file)
                parts.append((tile.longest, float(tile.error.max())))
                done += len(items)
                if on_progress is not None:
                    on_progress(Progress("compressing items", done, total))
            limits.append(np.max(parts, axis=0).tolist())
    (folder / LIMITS).write_text(json.dumps(limits))


def open_codes(folder: Path, groups: Sequence[FullVectors]) -> list[Int8Items]:
    """The codes of the groups that `write_codes` wrote. Raises ValueError if the files are not of these."""
    sizes = [_padded(len(full)) for full in groups]
    total = sum(size * full.dim for size, full in zip(sizes, groups, strict=True))
    codes = map_file(folder / FILES[0], np.int8, (total,))
    numbers = [map_file(folder / name, np.float32, (sum(sizes),)) for name in FILES[1:]]
    limits = np.array(json.loads((folder / LIMITS).read_text()), np.float64).reshape(-1, 2)
    if len(limits) != len(groups) or not np.isfinite(limits).all():
        raise ValueError(f"{folder / LIMITS} is damaged")
    items: list[Int8Items] = []
    code = start = 0
    for full, size, (longest, largest_error) in zip(groups, sizes, limits.tolist(), strict=True):
        own = codes[code : code + size * full.dim]
        scale, sums, error = (part[start : start + size] for part in numbers)
        items.append(Int8Items(full, Int8Codes(own, scale, sums, error, longest, largest_error)))
        code, start = code + size * full.dim, start + size
    return items


@dataclass(frozen=True, eq=False)
class Int8Codes:
    """Items in 8 bits. `codes` holds tiles `[dim, items]`; the others are `[items]`, 0 beyond the last."""

    codes: Any
    scale: Float32  # s
    sums: Float32  # s · Σ c · ZERO
    error: Float32  # ‖v − v̂‖, rounded up
    longest: float  # at least ‖v̂‖ of every item
    largest_error: float

    @property
    def arrays(self) -> tuple[Any, Float32, Float32, Float32]:
        """In the order of `FILES`."""
        return self.codes, self.scale, self.sums, self.error

    def view(self, codes: Any, change: Callable[[Float32], Float32]) -> Int8Codes:
        """Some of the codes, and the numbers changed alike."""
        numbers = change(self.scale), change(self.sums), change(self.error)
        return Int8Codes(codes, *numbers, self.longest, self.largest_error)


def quantise(items: Float32, width: int) -> Int8Codes:
    """One tile of `items [n, dim]`, filled up with zeros to `width` items.

    >>> tile = quantise(np.array([[1.0, -0.5]], np.float32), 1)
    >>> tile.codes.ravel().tolist(), round(float(tile.scale[0] * 127), 6), bool(tile.error[0] > 0)
    ([127, -64], 1.0, True)
    """
    largest = np.abs(items).max(axis=1, initial=0)
    scale = np.where(largest > 0, largest / np.float32(127), np.float32(1))
    codes = np.clip(np.rint(items / scale[:, None]), -127, 127)
    near = codes.astype(np.float64) * scale[:, None]
    error = np.linalg.norm(items - near, axis=1).astype(np.float32)
    tile = np.zeros((items.shape[1], width), np.int8)
    tile[:, : len(items)] = codes.T
    fill = (0, width - len(items))
    return Int8Codes(
        tile,
        np.pad(scale, fill),
        np.pad((near.sum(axis=1) * ZERO).astype(np.float32), fill),
        np.pad(np.nextafter(error, np.float32(np.inf)), fill),
        float(np.linalg.norm(near, axis=1).max(initial=0)) * (1 + 1e-9),
        float(error.max(initial=0)),
    )


class Int8Items:
    """A group's codes, and its full vectors for the last word."""

    def __init__(self, full: FullVectors, stored: Int8Codes) -> None:
        self._full = full
        self._spans: list[_Tiles] = []
        place = start = 0
        for count in (len(full) // TILE * TILE, len(full) % TILE):
            if count:
                width = min(TILE, _padded(count))
                end = start + -(-count // width) * width
                self._spans.append(_Tiles(place, count, _tiled(stored, full.dim, start, end, width)))
                place, start = place + count, end

    def best(
        self, queries: Float32, k: int, penalty: Penalty | None, floor: Float64
    ) -> tuple[Int64, Float64]:
        running = [Running(k) for _ in queries]
        step = 1 if len(queries) <= SINGLY else BATCH
        for start in range(0, len(queries), step):
            some = slice(start, start + step)
            self._search(queries[some], penalty, floor[some], running[some])
        return stack(running, k)

    def _search(
        self, queries: Float32, penalty: Penalty | None, floor: Float64, running: list[Running]
    ) -> None:
        rounded = RoundedQueries.of(queries)
        for tiles in self._passes(len(queries)):
            bounds, maxima = tiles.upper_bounds(rounded, penalty)
            for m, one in enumerate(running):
                self._refine(
                    queries[m], one, float(floor[m]), penalty, tiles.place, rounded.step,
                    bounds[:, m], maxima[:, m],
                )  # fmt: skip

    def _passes(self, queries: int) -> Iterator[_Tiles]:
        for tiles in self._spans:
            at_once = max(1, BOUNDS // (queries * tiles.width))
            for start in range(0, len(tiles.stored.codes), at_once):
                yield tiles.some(start, start + at_once)

    def _refine(
        self,
        query: Float32,
        best: Running,
        floor: float,
        penalty: Penalty | None,
        place: int,
        step: float,
        bounds: Float32,
        maxima: Float32,
    ) -> None:
        """Score every item of `bounds [tiles, items]`, in steps of the query, that may be among the best."""
        highest = maxima.ravel()
        blocks = bounds.reshape(len(bounds), -1, BLOCK)
        if np.isneginf(max(floor, best.last)):  # find a first floor among the most promising items
            count = min(best.k + EXTRA, len(highest))
            first = np.argpartition(-highest, count - 1)[:count]
            places, above = _items_of(blocks, first)
            count = min(4 * best.k, len(above))
            chosen = places[np.argpartition(-above, count - 1)[:count]] + place
            sample = Running(best.k)
            self._full.rescore(query, chosen[chosen < len(self._full)], penalty, sample)
            floor = sample.last
        limit = _below(max(floor, best.last) / step)
        places, above = _items_of(blocks, np.flatnonzero((highest >= limit) & (highest > -np.inf)))
        near = np.flatnonzero((above >= limit) & (above > -np.inf))
        near = near[np.argsort(-above[near])]
        for start in range(0, len(near), RESCORED):
            some = near[start : start + RESCORED]
            if above[some[0]] < _below(best.last / step):
                break
            chosen = places[some] + place
            self._full.rescore(query, chosen, penalty, best)


@dataclass(frozen=True, eq=False)
class RoundedQueries:
    """Queries in whole steps, common to all of them, and how wrong that is."""

    codes: Any  # [q, dim] uint8, ZERO is 0
    step: float
    length: float  # the largest ‖q‖
    error: float  # the largest ‖q − q̂‖

    @classmethod
    def of(cls, queries: Float32) -> RoundedQueries:
        wide = queries.astype(np.float64)
        step = float(np.abs(wide).max(initial=0)) / STEPS or 1.0
        whole = np.rint(wide / step)
        error = np.linalg.norm(wide - whole * step, axis=1).max(initial=0)
        length = np.linalg.norm(wide, axis=1).max(initial=0)
        return cls((whole + ZERO).astype(np.uint8), step, float(length), float(error))


@dataclass(frozen=True, eq=False)
class _Tiles:
    """Tiles of one width: `codes [tiles, dim, width]`, the others `[tiles, 1, width]`."""

    place: int  # of the first item
    count: int  # of items; the rest of the last tile is empty
    stored: Int8Codes

    @property
    def width(self) -> int:
        return int(self.stored.codes.shape[2])

    def some(self, start: int, end: int) -> _Tiles:
        left = min(self.count, end * self.width) - start * self.width
        stored = self.stored.view(self.stored.codes[start:end], lambda part: part[start:end])
        return _Tiles(self.place + start * self.width, left, stored)

    def upper_bounds(self, queries: RoundedQueries, penalty: Penalty | None) -> tuple[Float32, Float32]:
        """Bounds `[tiles, q, width]` and the largest of each block, in steps of the queries."""
        stored, step = self.stored, queries.step
        # What float32 may lose: 16 units in the last place of the largest terms, more than all roundings.
        terms = 127 * stored.codes.shape[1] ** 0.5 * stored.longest * step
        terms += queries.length * stored.largest_error + (penalty.largest if penalty is not None else 0.0)
        constant = queries.error * stored.longest + 2.0**-20 * terms
        add = stored.error * np.float32(queries.length / step)
        add -= stored.sums
        add += np.float32(constant / step)
        flat = add.reshape(-1)
        if penalty is not None:
            own = penalty.values[self.place : self.place + self.count]
            flat[: self.count] -= own * np.float32(1 / step)
        flat[self.count :] = -np.inf
        feed = {"queries": queries.codes, "codes": stored.codes, "scale": stored.scale, "add": add}
        bounds, maxima = _kernel().run(None, feed)
        return bounds, maxima


def _tiled(stored: Int8Codes, dim: int, start: int, end: int, width: int) -> Int8Codes:
    codes = stored.codes[start * dim : end * dim].reshape(-1, dim, width)
    return stored.view(codes, lambda part: part[start:end].reshape(-1, 1, width))


def _items_of(blocks: Float32, chosen: Int64) -> tuple[Int64, Float32]:
    """Places and bounds of all items of some blocks of `blocks [tiles, blocks of a tile, BLOCK]`."""
    tile, inside = np.divmod(chosen, blocks.shape[1])
    places = chosen[:, None] * BLOCK + np.arange(BLOCK)
    return places.ravel(), blocks[tile, inside].ravel()


def _below(value: float) -> np.float32:
    return np.float32(np.nextafter(np.float32(value), np.float32(-np.inf)))


def _padded(count: int) -> int:
    return -(-count // BLOCK) * BLOCK


@cache
def _kernel() -> Any:
    """An onnxruntime session: bounds and the largest of each block from codes, scales and what to add."""
    import onnxruntime as ort
    from onnx import TensorProto

    from wordreel.nets.graph import Graph
    from wordreel.nets.runtime import threads

    graph = Graph("upper_bounds")
    queries = graph.input("queries", ("queries", "dim"), TensorProto.UINT8)
    codes = graph.input("codes", ("tiles", "dim", "width"), TensorProto.INT8)
    scale = graph.input("scale", ("tiles", 1, "width"))
    add = graph.input("add", ("tiles", 1, "width"))
    product = graph.op("Cast", graph.op("MatMulInteger", queries, codes), to=TensorProto.FLOAT)
    bounds = graph.op("Add", graph.op("Mul", product, scale), add)
    blocks = graph.op("Reshape", bounds, graph.constant(np.array([0, 0, -1, BLOCK])))
    maxima = graph.op("ReduceMax", blocks, graph.constant(np.array([3])), keepdims=0)
    model = graph.finish({"bounds": bounds, "maxima": maxima})
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads()
    options.log_severity_level = 3
    # The optimiser would fuse the product with what follows, which has no fast path for one query.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
