"""The arrays of a safetensors file where they lie: nothing is read before it is used, and processes share it.

A file is 8 bytes with the length of the header, the header as JSON (name → dtype, shape, data_offsets; and
`__metadata__`), and the data. Files that are mapped are replaced as a whole, never written in place.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Array, Float32

Arrays = dict[str, Float32]
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
LONGEST_HEADER = 100_000_000  # bytes, as in the definition of the format


def map_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the metadata and the read-only arrays, by name.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a whole file of this kind, or has numbers that NumPy does not know.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= size <= min(LONGEST_HEADER, len(data) - 8):
        raise ValueError("it has no whole header")
    header = _parsed(data[8 : 8 + size])
    about = header.pop("__metadata__", {})
    if not isinstance(about, dict):
        raise ValueError("its metadata are no names and texts")
    return about, {name: _array(data, 8 + size, name, entry) for name, entry in header.items()}


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except RecursionError:
        raise ValueError("its header is nested too deeply") from None
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    return header


def _array(data: mmap.mmap, begin: int, name: str, entry: Any) -> Array:
    try:
        dtype, shape, (start, end) = np.dtype(DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        numbers = [*shape, start, end]
        if any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError("not a whole number")
        count = prod(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} is not described as it should be ({error})") from None
    if end - start != count * dtype.itemsize or begin + end > len(data):
        raise ValueError(f"{name} has not the bytes of its shape")
    if not count:
        return np.zeros(shape, dtype)
    return np.frombuffer(data, dtype, count, begin + start).reshape(shape)


def cached_arrays(root: Path, key: str, compute: Callable[[], Arrays]) -> Arrays:
    """Return the arrays of `compute()`, read from `root/derived/<key>.safetensors` if they are there.

    `key` must identify everything the arrays depend on. They are read-only. A file that cannot be read is
    computed again; a folder that cannot be written costs only time.
    """
    path = root / "derived" / f"{key}.safetensors"
    with suppress(OSError, ValueError):
        return map_safetensors(path)[1]
    from safetensors.numpy import save

    arrays = compute()
    with suppress(OSError):
        write_shared(path, save(arrays))
    return arrays


def write_shared(path: Path, data: bytes) -> None:
    """Replace a file as a whole. Unlike `atomic_write`, several processes may write the same one at once."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).replace(path)


def quantise(array: Float32) -> tuple[NDArray[np.int8], Float32]:
    """Quantise `[rows, columns]` to bytes and a scale per row.

    >>> small, scales = quantise(np.array([[0.5, -1.0], [0.0, 0.0]], np.float32))
    >>> small.tolist(), dequantise(small, scales).round(2).tolist()
    ([[64, -127], [0, 0]], [[0.5, -1.0], [0.0, 0.0]])
    """
    scales = np.maximum(np.abs(array).max(axis=1), 1e-12) / 127
    return np.rint(array / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def dequantise(small: NDArray[Any], scales: Float32) -> Float32:
    """Return the rows as float32 again."""
    return np.asarray(small.astype(np.float32) * scales[:, None], np.float32)
