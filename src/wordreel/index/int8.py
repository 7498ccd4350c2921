"""Certified exact search from 8-bit codes: a quarter of the memory traffic of float32, the same results.

An item v is stored as v̂ = s · c with whole numbers c in [-127, 127], its scale s, and its error ‖v − v̂‖. A
query q is rounded to q̂, 63 steps to each side. Then, by Cauchy and Schwarz,

    ⟨q, v⟩ ≤ ⟨q̂, v̂⟩ + ‖q − q̂‖ ‖v̂‖ + ‖q‖ ‖v − v̂‖ =: upper(v),

all of whose parts are known. A search computes the upper bound of every item by an integer matrix product,
scores the most promising items from the full vectors, and then every other item whose upper bound reaches
the k-th of those scores. No item that was left out can be among the k best, whatever the data: recall is 1.

Codes lie in tiles `[dim, items]`, as the integer product of onnxruntime wants them: rounded queries have
seven bits, so that two products fit the 16-bit sums of processors without VNNI. Files are mapped, not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.index.base import Index, Rest
from wordreel.index.groups import (
    DirectItems,
    FullVectors,
    Group,
    GroupedIndex,
    Penalty,
    Running,
    map_file,
    read_groups,
    write_groups,
)
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32

FEW = 256  # items of a group that are scored directly
TILE = 32_768  # items
PROMISING = 4  # times k: items that are scored first
RESCORED = 1_024  # items scored from the full vectors at once
STEPS = 63  # of a query to each side
ZERO = 64  # the code of 0 in a query
CODES, NUMBERS = "codes.bin", "numbers.bin"
ROUNDING = 2.0**-20  # of the largest terms: 16 units in the last place of float32, more than all roundings


@dataclass(frozen=True)
class _Builder:
    """`IndexBuilder` of certified exact search."""

    name: str = "int8"

    def build(
        self, folder: Path, vectors: Float32, available: Bool, on_progress: ProgressCallback | None = None
    ) -> None:
        write_groups(folder, available)
        large = [full for _, full in read_groups(folder, vectors) if has_codes(full)]
        done, total = 0, sum(map(len, large))
        with ExitStack() as opened:
            codes, numbers = (opened.enter_context((folder / name).open("wb")) for name in (CODES, NUMBERS))
            for full in large:
                for start in range(0, len(full), TILE):
                    tile, facts = quantise(full.take(slice(start, start + TILE)))
                    tile.tofile(codes)
                    facts.tofile(numbers)
                    done += len(facts[0])
                    if on_progress is not None:
                        on_progress(Progress("compressing items", done, total))

    def open(self, folder: Path, vectors: Float32, available: Bool) -> Index:
        read = list(read_groups(folder, vectors))
        large = [full for _, full in read if has_codes(full)]
        codes = map_file(folder / CODES, np.int8, (sum(len(full) * full.dim for full in large),))
        numbers = map_file(folder / NUMBERS, np.float32, (sum(4 * len(full) for full in large),))
        groups, code, number = [], 0, 0
        for pattern, full in read:
            if not has_codes(full):
                groups.append(Group(pattern, full, DirectItems(full)))
                continue
            items = Int8Items(full, codes[code:], numbers[number:])
            groups.append(Group(pattern, full, items))
            code, number = code + len(full) * full.dim, number + 4 * len(full)
        return GroupedIndex(self.name, vectors, available, groups, exact=True)


BUILDER = _Builder()


def has_codes(full: FullVectors) -> bool:
    """Return whether a group is large enough to be stored as codes."""
    return len(full) > FEW and full.dim > 0


def quantise(items: Float32) -> tuple[NDArray[np.int8], Float32]:
    """Return the codes `[dim, n]` of items, and `[4, n]`: s, s · Σ c · ZERO, ‖v − v̂‖ and ‖v̂‖, rounded up.

    >>> codes, numbers = quantise(np.array([[1.0, -0.5]], np.float32))
    >>> codes.ravel().tolist(), round(float(numbers[0, 0] * 127), 6), bool(numbers[2, 0] > 0)
    ([127, -64], 1.0, True)
    """
    largest = np.abs(items).max(axis=1, initial=0)
    scale = np.where(largest > 0, largest / np.float32(127), np.float32(1))
    codes = np.clip(np.rint(items / scale[:, None]), -127, 127)
    near = codes.astype(np.float64) * scale[:, None]
    lengths = np.stack([np.linalg.norm(items - near, axis=1), np.linalg.norm(near, axis=1)])
    numbers = np.concatenate([[scale, near.sum(axis=1) * ZERO], lengths]).astype(np.float32)
    numbers[2:] = np.nextafter(numbers[2:], np.float32(np.inf))
    return np.ascontiguousarray(codes.T.astype(np.int8)), numbers


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
class Tile:
    """Some neighbouring items: `codes [dim, n]` and `numbers [4, n]`, as `quantise` returns them."""

    places: slice
    codes: Any
    numbers: Float32

    def upper_bounds(self, queries: RoundedQueries, penalty: Penalty | None) -> Float32:
        """Return bounds of the scores `[q, n]`, in steps of the queries."""
        scale, sums, error, length = self.numbers
        # Of the true terms; what float32 may lose of them is added.
        terms = 127 * len(self.codes) ** 0.5 * float(length.max()) * queries.step
        terms += queries.length * float(error.max()) + (penalty.largest if penalty is not None else 0.0)
        added = error * np.float32(queries.length / queries.step)
        added += length * np.float32(queries.error / queries.step)
        added -= sums
        added += np.float32(ROUNDING * terms / queries.step)
        if penalty is not None:
            added -= penalty.of(self.places) * np.float32(1 / queries.step)
        bounds = _product().run(None, {"queries": queries.codes, "codes": self.codes})[0].astype(np.float32)
        bounds *= scale
        bounds += added
        return np.asarray(bounds, np.float32)


class Int8Items:
    """A group's codes, and its full vectors for the last word."""

    def __init__(self, full: FullVectors, codes: NDArray[np.int8], numbers: Float32) -> None:
        """`codes` and `numbers` are the files from where the group begins."""
        self._full, self._codes, self._numbers = full, codes, numbers

    def _tiles(self) -> Iterator[Tile]:
        dim = self._full.dim
        for start in range(0, len(self._full), TILE):
            end = min(start + TILE, len(self._full))
            codes = self._codes[start * dim : end * dim].reshape(dim, end - start)
            yield Tile(slice(start, end), codes, self._numbers[4 * start : 4 * end].reshape(4, -1))

    def best(self, query: Float32, best: Running, penalty: Penalty | None, floor: float) -> Rest | None:
        rounded = RoundedQueries.of(query[None])
        for tile in self._tiles():
            bounds = tile.upper_bounds(rounded, penalty)[0]
            self._refine(query, best, floor, penalty, tile.places.start, rounded.step, bounds)
        return None

    def _refine(
        self,
        query: Float32,
        best: Running,
        floor: float,
        penalty: Penalty | None,
        first: int,
        step: float,
        bounds: Float32,
    ) -> None:
        """Score every item of `bounds [n]`, in steps of the query, that may be among the best."""
        if np.isneginf(max(floor, best.last)):  # find a first floor among the most promising items
            count = min(PROMISING * best.k, len(bounds))
            promising = np.argpartition(-bounds, count - 1)[:count]
            sample = Running(best.k)
            self._full.rescore(query, promising + first, penalty, sample)
            floor = sample.last
        limit = _below(max(floor, best.last) / step)
        near = np.flatnonzero((bounds >= limit) & (bounds > -np.inf))
        near = near[np.argsort(-bounds[near])]
        for start in range(0, len(near), RESCORED):
            some = near[start : start + RESCORED]
            if bounds[some[0]] < _below(best.last / step):
                break
            self._full.rescore(query, some + first, penalty, best)


def _below(value: float) -> np.float32:
    return np.float32(np.nextafter(np.float32(value), np.float32(-np.inf)))


@cache
def _product() -> Any:
    """Return an onnxruntime session: the product of queries `[q, dim]` and codes `[dim, n]`."""
    import onnxruntime as ort
    from onnx import TensorProto, helper

    from wordreel.runtime.sessions import threads

    queries = helper.make_tensor_value_info("queries", TensorProto.UINT8, ("queries", "dim"))
    codes = helper.make_tensor_value_info("codes", TensorProto.INT8, ("dim", "items"))
    product = helper.make_tensor_value_info("product", TensorProto.INT32, ("queries", "items"))
    node = helper.make_node("MatMulInteger", ["queries", "codes"], ["product"])
    graph = helper.make_graph([node], "product", [queries, codes], [product])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
