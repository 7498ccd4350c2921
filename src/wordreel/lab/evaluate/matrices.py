"""Read similarity matrices and query masks from the files people have; nothing in a file is executed.

Formats are recognised by content, not by name: `.npy` and safetensors, both memory-mapped; `.npz`, HDF5 (with
h5py), pickles and PyTorch files. A file that holds several arrays, such as MMT's dictionaries
`{sims, query_masks}`, is searched for the usual names, then for the only array that fits.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import DatasetError, HubnessError, NextStep, UnsafePickle, WordreelError
from wordreel.lab.datasets.array_files import NPY_MAGIC, read_head, read_numpy
from wordreel.lab.datasets.hdf5 import MAGIC as HDF5_MAGIC
from wordreel.lab.datasets.hdf5 import read_arrays as read_hdf5
from wordreel.retrieval.caption_ranks import row_blocks
from wordreel.runtime import torch_file
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.types import Array

MATRIX_KEYS = ("sims", "t2v_sims", "similarities", "sim_matrix")
MASK_KEYS = ("query_masks", "query_mask", "masks", "mask")
MATRIX_STEP = NextStep("save the array as .npy and pass that file")
MAX_BYTES = 4 * 2**30  # of a file that is not mapped
ALONE = ""  # the name of an array that is the whole file


def read_matrix(path: Path, key: str | None = None) -> Array:
    """Read the `[rows, columns]` similarities in a file: finite real numbers, mapped where possible.

    `key` chooses among the arrays of a file that holds several.
    """
    return matrix_among(read_arrays(path, key), path, key)


def read_mask(path: Path, key: str | None = None) -> Array:
    """Return the query mask in a file, in whatever shape it has."""
    return _pick(read_arrays(path, key), path, key, MASK_KEYS, lambda array: array.size > 0)


def read_captioned(
    path: Path, key: str | None = None, mask: Path | None = None
) -> tuple[Array, Array | None, str | None]:
    """Return a matrix, its query mask if there is one, and a note where the mask came from the same file."""
    arrays = read_arrays(path, key)
    matrix = matrix_among(arrays, path, key)
    if mask is not None:
        return matrix, read_mask(mask), None
    name = next((name for name in MASK_KEYS if name in arrays), None)
    if name is None:
        return matrix, None, None
    return matrix, arrays[name], f"using the mask {name} of {path.name}"


def read_counts(text: str) -> Array:
    """Read captions per video from a file of numbers.

    The file is an array file or text (JSON, or numbers separated by blanks).
    """
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
    """Return the matrix among the arrays of a file, checked."""
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
    """Return all arrays of a file by name; `key` may save reading the others. A lone array is `ALONE`."""
    head = _head(path)
    try:
        content = _read(path, head, key)
    except UnsafePickle:
        raise
    except DatasetError as error:
        raise HubnessError(error.message, error.next_step) from None
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
    if not path.is_file():
        raise HubnessError(f"there is no file {path}")
    return read_head(path)


def _read(path: Path, head: bytes, key: str | None) -> Any:
    if head.startswith(HDF5_MAGIC):
        return read_hdf5(path, key, MAX_BYTES)
    if head.startswith(b"PK"):
        return _read_zip(path)
    if head[4:9] == b"\0\0\0\0{":
        try:
            return map_safetensors(path)[1]
        except ValueError:  # bfloat16, which NumPy lacks, or damaged
            return torch_file.read_checkpoint(path)
    if path.suffix.lower() in (".pt", ".pth"):
        return torch_file.read_checkpoint(path)
    if head.startswith((NPY_MAGIC, b"\x80")) or path.suffix.lower() in (".pkl", ".pickle"):
        return read_numpy(path, MATRIX_STEP, MAX_BYTES)
    raise HubnessError("not a file of arrays; known are .npy, .npz, .safetensors, .h5, .pkl and .pt")


def _read_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as zipped:
        members = zipped.infolist()
    if any(member.filename.endswith("data.pkl") for member in members):
        return torch_file.read_checkpoint(path)
    if sum(member.file_size for member in members) > MAX_BYTES:
        raise HubnessError(f"it unpacks to more than the {MAX_BYTES} bytes allowed; save a .npy")
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


@contextmanager
def new_matrix(path: Path | None, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[Array | None]:
    """Yield an `.npy` file to fill, which gets its name when it is complete; None where there is no path."""
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
