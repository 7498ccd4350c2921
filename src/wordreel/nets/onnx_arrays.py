"""Read the weights of an ONNX file in place, without onnx: where each array's bytes are.

Only what our own converters write is understood: `raw_data` of float32 inside the file. The fields are
those of onnx.proto: ModelProto.graph = 7, GraphProto.initializer = 5, TensorProto.dims = 1, data_type = 2 and
raw_data = 9.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from wordreel.errors import WeightsCorrupt
from wordreel.nets.protobuf import fields, varint
from wordreel.types import Float32

_GRAPH, _INITIALIZER = 7, 5
_DIMS, _DATA_TYPE, _RAW_DATA = 1, 2, 9
_FLOAT = 1  # of TensorProto.DataType


@dataclass(frozen=True)
class MappedArray:
    """A float32 array inside a mapped file; its bytes need not be aligned."""

    data: memoryview
    shape: tuple[int, ...]

    def copy(self, into: Float32 | None = None) -> Float32:
        """The array, in the first elements of the scratch `into [elements]` if that is given."""
        count = prod(self.shape)
        target = np.empty(count, np.float32) if into is None else into[:count]
        target.view(np.uint8)[:] = np.frombuffer(self.data, np.uint8)
        return target.reshape(self.shape)

    def rows(self, numbers: list[int]) -> Float32:
        """Some rows of a table."""
        width = prod(self.shape[1:])
        parts = [np.frombuffer(self.data[n * width * 4 : (n + 1) * width * 4], "V4") for n in numbers]
        return np.concatenate(parts).view(np.float32).reshape(len(numbers), *self.shape[1:])


def map_arrays(path: Path) -> list[MappedArray]:
    """The float32 arrays of a network that have a shape, in the order of the file."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        graph = next(
            part for number, part in fields(data) if number == _GRAPH and isinstance(part, memoryview)
        )
        tensors = [_tensor(_bytes(part)) for number, part in fields(_bytes(graph)) if number == _INITIALIZER]
    except (StopIteration, IndexError, ValueError) as error:
        raise WeightsCorrupt(f"{path} is not a network that wordreel has written ({error})") from None
    return [one for one in tensors if one is not None]


def _bytes(value: memoryview | int) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number in the place of a message")
    return value


def _tensor(part: memoryview) -> MappedArray | None:
    shape: list[int] = []
    kind, raw = 0, None
    for number, value in fields(part):
        if number == _DIMS:
            shape += [value] if isinstance(value, int) else _numbers(value)
        elif number == _DATA_TYPE and isinstance(value, int):
            kind = value
        elif number == _RAW_DATA and isinstance(value, memoryview):
            raw = value
    if kind != _FLOAT or not shape:
        return None
    if raw is None or len(raw) != 4 * prod(shape):
        raise ValueError("an array without its bytes")
    return MappedArray(raw, tuple(shape))


def _numbers(packed: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(packed):
        value, at = varint(packed, at)
        values.append(value)
    return values
