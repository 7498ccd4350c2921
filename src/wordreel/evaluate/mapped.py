"""Arrays in safetensors and HDF5 files as memory maps, so that a matrix may be larger than memory.

What cannot be mapped because it is compressed or in pieces is unpacked block by block into a file without a
name, which is mapped and disappears with the array.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError
from wordreel.weights.torch_file import SAFETENSORS, read_checkpoint

Array = NDArray[Any]

UNPACK = 1 << 24  # bytes read at once


def map_safetensors(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file. bfloat16, which NumPy has not, is read instead."""
    import safetensors

    try:
        # It looks at every entry of the header: kinds, shapes, and that they fill the file without overlap.
        with safetensors.safe_open(path, framework="numpy"):
            pass
    except safetensors.SafetensorError as error:
        raise HubnessError(f"not a safetensors file: {error}") from None
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        entries = {
            name: entry for name, entry in json.loads(file.read(size)).items() if name != "__metadata__"
        }
    kinds = {name: SAFETENSORS.get(entry["dtype"]) for name, entry in entries.items()}
    for name, kind in kinds.items():
        if kind is None:
            raise HubnessError(f"{name} has the type {entries[name]['dtype']}, which is not read")
    if "bfloat16" in kinds.values():
        found: dict[str, Array] = read_checkpoint(path)
        return found
    return {
        name: map_part(path, str(kinds[name]), 8 + size + entry["data_offsets"][0], tuple(entry["shape"]))
        for name, entry in entries.items()
    }


def map_hdf5(path: Path, key: str | None, most: int) -> dict[str, Array]:
    """The arrays of an HDF5 file, of at most `most` bytes each where they must be unpacked."""
    try:
        import h5py  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise HubnessError("reading HDF5 files needs h5py: pip install h5py") from None
    found: dict[str, Array] = {}

    def visit(name: str, item: Any) -> None:
        if not (isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub" and key in (None, name)):
            return
        offset = None if item.external or item.is_virtual else item.id.get_offset()
        if offset is not None and item.chunks is None:
            found[name] = map_part(path, item.dtype, offset, item.shape)
        elif item.nbytes > most:
            raise HubnessError(f"{name} is packed and has {item.nbytes} bytes, more than {most}; unpack it")
        else:
            found[name] = _unpacked(item)

    with h5py.File(path, "r") as file:
        file.visititems(visit)  # does not follow links, so it stays within the file
    return found


def map_part(path: Path, kind: Any, offset: int, shape: tuple[int, ...]) -> Array:
    """`shape` numbers of a file from `offset` on, read-only."""
    if 0 in shape:  # nothing cannot be mapped
        return np.empty(shape, kind)
    return np.memmap(path, kind, "r", offset, shape)


def _unpacked(item: Any) -> Array:
    if item.ndim == 0 or 0 in item.shape:
        return np.asarray(item[()])
    with tempfile.TemporaryFile() as file:
        out = np.memmap(file, item.dtype, "w+", 0, item.shape)
    for rows in _row_blocks(item):
        out[rows] = item[rows]
    out.flags.writeable = False
    return out


def _row_blocks(item: Any) -> Iterator[slice]:
    step = max(1, UNPACK // max(1, item.nbytes // item.shape[0]))
    if item.chunks is not None:  # whole pieces, so that none is unpacked twice
        step = max(item.chunks[0], step // item.chunks[0] * item.chunks[0])
    for start in range(0, item.shape[0], step):
        yield slice(start, min(start + step, item.shape[0]))
