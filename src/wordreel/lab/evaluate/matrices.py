"""Reading similarity matrices and query masks from the files people have; nothing in a file is executed.

`.npy`, safetensors and HDF5 (with h5py), all memory-mapped; `.npz`, pickles and PyTorch files of arrays:
recognised by content, not by name. What cannot be mapped because it is compressed or chunked is unpacked
block by block into an unnamed temporary file, which is mapped. A file that holds several arrays, such as
MMT's dictionaries `{sims, query_masks}`, is looked into for the usual names, then for the only array that
fits.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import HubnessError, NextStep, UnsafePickle, WordreelError
from wordreel.retrieval.caption_ranks import row_blocks
from wordreel.runtime import mapped_arrays, numpy_pickle, torch_file
from wordreel.types import Array

MATRIX_KEYS = ("sims", "t2v_sims", "similarities", "sim_matrix")
MASK_KEYS = ("query_masks", "query_mask", "masks", "mask")
MATRIX_STEP = NextStep("save the array as .npy and pass that file")
UNPACK = 1 << 24  # bytes read at once
ALONE = ""  # the name of an array that is the whole file


def read_matrix(path: Path, key: str | None = None) -> Array:
    """The `[rows, columns]` similarities in a file: finite real numbers, memory-mapped where that can be.

    `key` chooses among the arrays of a file that holds several.
    """
    return matrix_among(read_arrays(path, key), path, key)


def read_mask(path: Path, key: str | None = None) -> Array:
    """The query mask in a file, in whatever shape it has."""
    return _pick(read_arrays(path, key), path, key, MASK_KEYS, lambda array: array.size > 0)


def read_captioned(
    path: Path, key: str | None = None, mask: Path | None = None
) -> tuple[Array, Array | None, str | None]:
    """A matrix, its query mask if there is one, and a note where the mask came from the same file."""
    arrays = read_arrays(path, key)
    matrix = matrix_among(arrays, path, key)
    if mask is not None:
        return matrix, read_mask(mask), None
    name = next((name for name in MASK_KEYS if name in arrays), None)
    if name is None:
        return matrix, None, None
    return matrix, arrays[name], f"using the mask {name} of {path.name}"


def read_counts(text: str) -> Array:
    """Captions per video: a file of numbers, as an array file or as text (JSON, or separated by blanks)."""
    path = Path(text)
    try:
        head = _head(path)
        if head[:1].isdigit() or head[:1] in (b"[", b" ", b"\n"):
            words = path.read_text(encoding="ascii").replace("[", " ").replace("]", " ").replace(",", " ")
            return np.array([int(word) for word in words.split()], np.int64)
    except (ValueError, OverflowError) as error:
        raise HubnessError(f"{path} does not list one whole number per video: {error}") from None
    return _pick(read_arrays(path), path, None, ("counts", "captions"), lambda array: array.size > 0)


def matrix_among(arrays: Mapping[str, Array], path: Path, key: str | None = None) -> Array:
    """The matrix among the arrays of a file, checked."""
    matrix = _pick(arrays, path, key, MATRIX_KEYS, lambda array: array.ndim == 2)
    if matrix.ndim != 2:
        raise HubnessError(
            f"{path} holds an array of shape {matrix.shape}; similarities are a matrix [queries, items]"
        )
    if matrix.dtype.kind not in "fiu":
        raise HubnessError(f"{path} holds {matrix.dtype}; similarities are real numbers")
    if 0 in matrix.shape:
        raise HubnessError(f"{path} holds an empty matrix of shape {matrix.shape}")
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    for span, rows in row_blocks(matrix):
        # Both pass NaN on, and are faster than looking at every number for itself.
        if not (np.isfinite(rows.min()) and np.isfinite(rows.max())):
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise HubnessError(
                f"{path}: the similarity in row {span.start + row}, column {column} is {rows[row, column]}; "
                "leave out or mend the embeddings that are not finite"
            )
    return matrix


def read_arrays(path: Path, key: str | None = None) -> dict[str, Array]:
    """All arrays of a file by name; `key` may save reading the others. One without a name is `ALONE`."""
    head = _head(path)
    try:
        content = _read(path, head, key)
    except UnsafePickle as error:
        raise UnsafePickle(f"{path}: {error.message}", error.next_step) from None
    except WordreelError as error:
        raise HubnessError(f"{path}: {error}") from None
    except Exception as error:  # a hostile file can make a reader raise nearly anything
        raise HubnessError(f"{path} cannot be read: {type(error).__name__}: {error}") from None
    if isinstance(content, np.ndarray):
        return {ALONE: content}
    if isinstance(content, dict):
        return {str(name): value for name, value in content.items() if isinstance(value, np.ndarray)}
    raise HubnessError(f"{path} holds a {type(content).__name__} where an array of similarities is expected")


def _head(path: Path) -> bytes:
    try:
        if path.is_file():
            with path.open("rb") as file:
                return file.read(16)
    except OSError as error:
        raise HubnessError(f"{path} cannot be read: {error.strerror}") from None
    raise HubnessError(f"there is no file {path}")


def _read(path: Path, head: bytes, key: str | None) -> Any:
    if head.startswith(b"\x93NUMPY"):
        return _read_npy(path)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return map_hdf5(path, key, numpy_pickle.MAX_BYTES)
    if head.startswith(b"PK"):
        return _read_zip(path)
    if head[4:9] == b"\0\0\0\0{":
        return map_safetensors(path)
    if head.startswith(b"\x80") or path.suffix.lower() in (".pkl", ".pickle"):
        # latin1, because pickles of Python 2 keep the bytes of arrays as text.
        content = numpy_pickle.load(path, encoding="latin1", next_step=MATRIX_STEP)
        older = isinstance(content, int) and content == torch_file.MAGIC
        return torch_file.read_checkpoint(path) if older else content
    raise HubnessError("not a file of arrays; known are .npy, .npz, .safetensors, .h5, .pkl and .pt")


def _read_npy(path: Path) -> Any:
    with path.open("rb") as file:
        shape, dtype = numpy_pickle.read_npy_header(file, path.name)
    if dtype.hasobject:
        return numpy_pickle.read_numpy_pickle(path, encoding="latin1", next_step=MATRIX_STEP)
    # A file without content cannot be mapped.
    return np.empty(shape, dtype) if 0 in shape else np.load(path, mmap_mode="r", allow_pickle=False)


def _read_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as zipped:
        members = zipped.infolist()
    if any(member.filename.endswith("data.pkl") for member in members):
        return torch_file.read_checkpoint(path)
    if sum(member.file_size for member in members) > numpy_pickle.MAX_BYTES:
        raise HubnessError(f"it unpacks to more than the {numpy_pickle.MAX_BYTES} bytes allowed; save a .npy")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _pick(
    arrays: Mapping[str, Array],
    path: Path,
    key: str | None,
    usual: Sequence[str],
    fits: Callable[[Array], bool],
) -> Array:
    if ALONE in arrays and len(arrays) == 1:
        return arrays[ALONE]
    held = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items()) or "no arrays"
    if key is not None:
        if key not in arrays:
            raise HubnessError(f"{path} has no array {key!r}; it holds {held}")
        return arrays[key]
    for name in usual:
        if name in arrays:
            return arrays[name]
    fitting = [array for array in arrays.values() if fits(array)]
    if len(fitting) != 1:
        raise HubnessError(f"{path} holds {held}", NextStep("choose one with --key"))
    return fitting[0]


def map_safetensors(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file. bfloat16, which NumPy lacks, is read instead."""
    import safetensors

    try:
        # It checks every entry of the header: kinds, shapes, and that they fill the file without overlap.
        with safetensors.safe_open(path, framework="numpy"):
            pass
    except safetensors.SafetensorError as error:
        raise HubnessError(f"not a safetensors file: {error}") from None
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        entries = {
            name: entry for name, entry in json.loads(file.read(size)).items() if name != "__metadata__"
        }
    if any(entry["dtype"] not in mapped_arrays.DTYPES for entry in entries.values()):
        arrays: dict[str, Array] = torch_file.read_checkpoint(path)
        return arrays
    return {
        name: map_part(
            path,
            mapped_arrays.DTYPES[entry["dtype"]],
            8 + size + entry["data_offsets"][0],
            tuple(entry["shape"]),
        )
        for name, entry in entries.items()
    }


def map_hdf5(path: Path, key: str | None, most: int) -> dict[str, Array]:
    """The arrays of an HDF5 file, of at most `most` bytes each where they must be unpacked."""
    try:
        import h5py  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise HubnessError(
            "reading HDF5 files needs h5py", NextStep("install it: pip install 'wordreel[datasets]'")
        ) from None
    arrays: dict[str, Array] = {}

    def visit(name: str, item: Any) -> None:
        if not (isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub" and key in (None, name)):
            return
        offset = None if item.external or item.is_virtual else item.id.get_offset()
        if offset is not None and item.chunks is None:
            arrays[name] = map_part(path, item.dtype, offset, item.shape)
        elif item.nbytes > most:
            raise HubnessError(f"{name} is packed and has {item.nbytes} bytes, more than {most}; unpack it")
        else:
            arrays[name] = _unpacked(item)

    with h5py.File(path, "r") as file:
        file.visititems(visit)  # does not follow links, so it stays within the file
    return arrays


def map_part(path: Path, kind: Any, offset: int, shape: tuple[int, ...]) -> Array:
    """`shape` numbers of a file from `offset` on, read-only."""
    if 0 in shape:  # an empty file cannot be mapped
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


@contextmanager
def new_matrix(path: Path | None, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[Array | None]:
    """An `.npy` file to fill, which gets its name when it is complete; None where there is no path."""
    if path is None:
        yield None
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        out = np.lib.format.open_memmap(partial, mode="w+", dtype=kind, shape=shape)
        yield out
        out.flush()
        partial.replace(path)
    except OSError as error:
        raise HubnessError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
