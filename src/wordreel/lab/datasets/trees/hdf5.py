"""Safe reading of untrusted HDF5 files: nothing outside the file, and bounded sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import DatasetError, NextStep

MAX_ARRAY_BYTES = 2**30  # a compressed file may claim far more than it has
MAGIC = b"\x89HDF\r\n\x1a\n"


class H5pyMissing(DatasetError):
    """h5py, which HDF5 files need, is not installed."""


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open a file for reading; any error becomes a `DatasetError` that names the file."""
    try:
        import h5py
    except ImportError:
        raise H5pyMissing(
            f"reading {path.name} needs h5py", NextStep("install it with pip install 'wordreel[datasets]'")
        ) from None
    try:
        with h5py.File(path, "r") as file:
            yield file
    except DatasetError as error:
        raise DatasetError(f"{path}: {error.message}", error.next_step) from None
    except FileNotFoundError:
        raise DatasetError(f"there is no file {path}") from None
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can make the reader raise nearly anything
        raise DatasetError(f"{path} cannot be read: {type(error).__name__}: {error}") from None


def get_child(group: Any, name: str) -> Any:
    """A group's child by name. Soft and external links are refused."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise DatasetError(f"{name!r:.60} is a link; only what is in the file itself is read")
    return group[name]


def read_array(dataset: Any) -> NDArray[Any]:
    """The numbers or the text of an HDF5 dataset."""
    if dataset.shape is None:
        return np.zeros(0)
    if dataset.external is not None or dataset.is_virtual:
        raise DatasetError("the numbers are stored in another file; only what is in the file itself is read")
    if dataset.nbytes > MAX_ARRAY_BYTES:
        raise DatasetError(f"{dataset.nbytes} bytes in one array; the limit is {MAX_ARRAY_BYTES}")
    return np.asarray(dataset[()])


def as_text(value: Any) -> str:
    """A string, stored as bytes or as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
