"""Reading HDF5 files of strangers: only what is inside the file, and no more of it than is sensible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import DatasetError

ITEM_BYTES = 2**30  # of one array: a compressed file may claim far more than it has
MAGIC = b"\x89HDF\r\n\x1a\n"


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The file, open for reading; whatever is wrong with it becomes a `DatasetError` that names it."""
    try:
        import h5py
    except ImportError:
        raise DatasetError(f"reading {path.name} needs h5py: pip install 'wordreel[datasets]'") from None
    try:
        with h5py.File(path, "r") as file:
            yield file
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise DatasetError(f"there is no file {path}") from None
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can make the reader raise nearly anything
        raise DatasetError(f"{path} cannot be read: {type(error).__name__}: {error}") from None


def child(group: Any, name: str) -> Any:
    """A group or dataset of this very file: links that lead out of it, or around in it, are refused."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise DatasetError(f"{name!r:.60} is a link; only what is in the file itself is read")
    return group[name]


def array(dataset: Any) -> NDArray[Any]:
    """The numbers or the text of a dataset."""
    if dataset.shape is None:
        return np.zeros(0)
    if dataset.external is not None or dataset.is_virtual:
        raise DatasetError("the numbers are kept in another file; only what is in the file itself is read")
    if dataset.nbytes > ITEM_BYTES:
        raise DatasetError(f"{dataset.nbytes} bytes in one array; {ITEM_BYTES} are allowed")
    return np.asarray(dataset[()])


def text(value: Any) -> str:
    """One string of a dataset, whichever way it is kept."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
