"""Upper bounds of scores from 8-bit codes: the codes of items, rounded queries, and their integer product.

Codes lie in tiles `[dim, items]`, as the integer kernels of onnxruntime want them: rounded queries have seven
bits, so that two products fit the 16-bit sums of processors without VNNI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from wordreel.index.groups import Penalty
from wordreel.types import Float32

TILE = 32_768  # items; a multiple of BLOCK
BLOCK = 64  # items whose largest bound is computed with them
STEPS = 63  # of a query to each side
ZERO = 64  # the code of 0 in a query


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
class Tiles:
    """Tiles of one width: `codes [tiles, dim, width]`, the others `[tiles, 1, width]`."""

    place: int  # of the first item
    count: int  # of items; the rest of the last tile is empty
    stored: Int8Codes

    @classmethod
    def of(cls, stored: Int8Codes, dim: int, span: slice, width: int, place: int, count: int) -> Tiles:
        """The tiles in one span of the stored items, the first of which is the item `place`."""
        start, end = span.start, span.stop
        codes = stored.codes[start * dim : end * dim].reshape(-1, dim, width)
        return cls(place, count, stored.view(codes, lambda part: part[start:end].reshape(-1, 1, width)))

    @property
    def width(self) -> int:
        return int(self.stored.codes.shape[2])

    def some(self, start: int, end: int) -> Tiles:
        left = min(self.count, end * self.width) - start * self.width
        stored = self.stored.view(self.stored.codes[start:end], lambda part: part[start:end])
        return Tiles(self.place + start * self.width, left, stored)

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


def padded(count: int) -> int:
    return -(-count // BLOCK) * BLOCK


@cache
def _kernel() -> Any:
    """An onnxruntime session: bounds and the largest of each block from codes, scales and what to add."""
    import onnxruntime as ort
    from onnx import TensorProto

    from wordreel.runtime.nets.graph import Graph
    from wordreel.runtime.sessions import threads

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
