"""Certified exact search from 8-bit codes: a quarter of the memory traffic of float32, the same results.

An item v is stored as v̂ = s · c with whole numbers c in [-127, 127], its scale s, and its error ‖v − v̂‖. A
query q is rounded to q̂, 63 steps to each side. Then, by Cauchy and Schwarz,

    ⟨q, v⟩ ≤ ⟨q̂, v̂⟩ + ‖q − q̂‖ ‖v̂‖ + ‖q‖ ‖v − v̂‖ =: upper(v),

all of whose parts are known. A search computes the upper bound of every item by an integer matrix product,
scores the most promising items from the full vectors, and then every other item whose upper bound reaches
the k-th of those scores. No item that was left out can be among the k best, whatever the data: recall is 1.

Bounds are computed by `int8_bounds`. Files are mapped, not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.index.base import Index
from wordreel.index.groups import (
    DirectItems,
    FullVectors,
    Group,
    GroupBest,
    GroupedIndex,
    Penalty,
    Running,
    map_file,
    read_groups,
    stack,
    write_groups,
)
from wordreel.index.int8_bounds import BLOCK, TILE, Int8Codes, RoundedQueries, Tiles, padded, quantise
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32, Float64, Int64

FEW = 256  # items of a group that are scored directly
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
                tile = quantise(items, padded(len(items)))
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
    sizes = [padded(len(full)) for full in groups]
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


class Int8Items:
    """A group's codes, and its full vectors for the last word."""

    def __init__(self, full: FullVectors, stored: Int8Codes) -> None:
        self._full = full
        self._spans: list[Tiles] = []
        place = start = 0
        for count in (len(full) // TILE * TILE, len(full) % TILE):
            if count:
                width = min(TILE, padded(count))
                end = start + -(-count // width) * width
                self._spans.append(Tiles.of(stored, full.dim, slice(start, end), width, place, count))
                place, start = place + count, end

    def best(self, queries: Float32, k: int, penalty: Penalty | None, floor: Float64) -> GroupBest:
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

    def _passes(self, queries: int) -> Iterator[Tiles]:
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


def _items_of(blocks: Float32, chosen: Int64) -> tuple[Int64, Float32]:
    """Places and bounds of all items of some blocks of `blocks [tiles, blocks of a tile, BLOCK]`."""
    tile, inside = np.divmod(chosen, blocks.shape[1])
    places = chosen[:, None] * BLOCK + np.arange(BLOCK)
    return places.ravel(), blocks[tile, inside].ravel()


def _below(value: float) -> np.float32:
    return np.float32(np.nextafter(np.float32(value), np.float32(-np.inf)))
