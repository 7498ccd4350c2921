"""Files of arrays that other programs wrote: `.npy`, pickles and hickle. Nothing in them is executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import DatasetError, NextStep, UnsafePickle
from wordreel.lab.datasets.hdf5 import MAGIC as HDF5_MAGIC
from wordreel.lab.datasets.hdf5 import read_hickle
from wordreel.runtime import numpy_pickle

MAX_BYTES = 32 * 2**30  # word features of a whole dataset are this large
NPY_MAGIC = b"\x93NUMPY"
REFUSED_STEP = NextStep("get the file again with plain arrays and text only, from a source you trust")


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, which tell its format."""
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from None


def read_value(path: Path) -> Any:
    """Return what a hickle file, an `.npy` file or a pickle holds."""
    return read_hickle(path, MAX_BYTES) if read_head(path).startswith(HDF5_MAGIC) else read_numpy(path)


def read_numpy(path: Path, next_step: NextStep = REFUSED_STEP, max_bytes: int = MAX_BYTES) -> Any:
    """Return the array of an `.npy` file, memory-mapped, or the arrays, containers and text of a pickle.

    Raises:
        UnsafePickle: The pickle holds something else; `next_step` is the advice.
        DatasetError: The file cannot be read.
    """
    options: dict[str, Any] = {"max_bytes": max_bytes, "next_step": next_step}
    # latin1, because Python 2 pickles store the bytes of arrays as text.
    options["encoding"] = "latin1"
    try:
        if not read_head(path).startswith(NPY_MAGIC):
            return numpy_pickle.load(path, **options)
        with path.open("rb") as file:
            shape, dtype = numpy_pickle.read_npy_header(file, path.name)
        if dtype.hasobject:
            return numpy_pickle.read_numpy_pickle(path, **options)
        # A file without content cannot be mapped.
        return np.empty(shape, dtype) if 0 in shape else np.load(path, mmap_mode="r", allow_pickle=False)
    except UnsafePickle as error:
        raise UnsafePickle(f"{path}: {error.message}", error.next_step) from None
    except (ValueError, OSError, EOFError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Return a file's values by item id; ids that are numbers or bytes become text."""
    content = read_value(path)
    if not isinstance(content, Mapping):
        raise DatasetError(f"{path} holds a {type(content).__name__}, not a mapping of ids to values")
    return {as_id(key): value for key, value in content.items()}


def as_id(key: Any) -> str:
    """Return an item's id as text.

    >>> as_id(7), as_id(b"vid7")
    ('7', 'vid7')
    """
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
