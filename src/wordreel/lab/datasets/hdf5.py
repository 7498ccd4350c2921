"""Safe reading of untrusted HDF5 files, and of hickle files, which are HDF5 files of dictionaries.

Nothing outside the file is read, and sizes are bounded.

Hickle has three generations. Dictionary keys are group names in Python syntax: `'key'` in versions 3 and 4,
where the value is one level down; `"key"` in version 5, where the value is the group itself. Keys with a
slash are nested groups in version 3, have a backslash in version 4, and are a pair (key, value) in version 5.
Types that the writer pickled beside the values are ignored: values are arrays, numbers, text and lists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import DatasetError, NextStep

MAX_ARRAY_BYTES = 2**30  # a compressed file may claim far more than it has
MAGIC = b"\x89HDF\r\n\x1a\n"
MAX_DEPTH = 8
NUMBERED = re.compile(r"data_?(\d*)")


class H5pyMissing(DatasetError):
    """h5py, which HDF5 files need, is not installed."""


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open a file for reading; any error becomes a `DatasetError` that names the file."""
    try:
        import h5py
    except ImportError:
        raise H5pyMissing(
            f"reading {path.name} needs h5py", NextStep("install it: pip install 'wordreel[datasets]'")
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
    """Return a group's child by name. Soft and external links are refused."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise DatasetError(f"{name!r:.60} is a link; only what is in the file itself is read")
    return group[name]


def read_array(dataset: Any, max_bytes: int = MAX_ARRAY_BYTES) -> NDArray[Any]:
    """Return the numbers or the text of an HDF5 dataset."""
    if dataset.shape is None:
        return np.zeros(0)
    if dataset.external is not None or dataset.is_virtual:
        raise DatasetError("the numbers are stored in another file; only what is in the file itself is read")
    if dataset.nbytes > max_bytes:
        raise DatasetError(f"{dataset.nbytes} bytes in one array; the limit is {max_bytes}")
    return np.asarray(dataset[()])


def read_arrays(path: Path, key: str | None, max_bytes: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of numbers in a file by name, or only the one called `key`."""
    arrays: dict[str, NDArray[Any]] = {}

    def visit(name: str, node: Any) -> None:
        if getattr(node, "dtype", None) is not None and node.dtype.kind in "fiub" and key in (None, name):
            arrays[name] = read_array(node, max_bytes)

    with open_hdf5(path) as file:
        file.visititems(visit)  # does not follow links, so it stays within the file
    return arrays


def read_hickle(path: Path, max_bytes: int) -> Any:
    """Return the content of a hickle file; sets, complex objects and anything pickled are ignored."""
    with open_hdf5(path) as file:
        top = [name for name in ("data_0", "data") if name in file]
        if not top:
            raise DatasetError("not a hickle file: it has neither data_0 nor data")
        return _HickleReader(max_bytes).value(get_child(file, top[0]), 0)


class _HickleReader:
    def __init__(self, bytes_left: int) -> None:
        self.bytes_left = bytes_left

    def value(self, node: Any, depth: int) -> Any:
        import h5py

        if depth > MAX_DEPTH:
            raise DatasetError("nested deeper than features are")
        if isinstance(node, h5py.Dataset):
            return self.leaf(node)
        if _kind(node) == "dict" or any(name[:1] in "'\"" for name in node):
            return dict(self.items(node, "", depth))
        numbered = sorted((int(match[1] or 0), name) for name in node if (match := NUMBERED.fullmatch(name)))
        parts = [self.value(get_child(node, name), depth + 1) for _, name in numbered]
        return parts[0] if parts and _kind(node) == "dict_item" else parts

    def items(self, group: Any, start: str, depth: int) -> Iterator[tuple[Any, Any]]:
        """Yield the entries of a dictionary; `start` is the part of their keys that is read already."""
        if depth > MAX_DEPTH:
            raise DatasetError("nested deeper than features are")
        for name in group:
            child, key = get_child(group, name), f"{start}{name}"
            if _attribute(child, "key_base_type") == "key_value":
                yield tuple(self.value(child, depth + 1))
            elif key.startswith("'") and not key.endswith("'"):
                yield from self.items(child, f"{key}/", depth + 1)
            else:
                yield _key(key), self.value(child, depth + 1)

    def leaf(self, node: Any) -> Any:
        if node.shape is None or _kind(node) in ("none", "None"):
            return None
        self.bytes_left -= int(node.nbytes)
        if self.bytes_left < 0:
            raise DatasetError("the arrays are larger together than a feature file may be")
        value = read_array(node)
        if _attribute(node, "str_type") == "str" and value.dtype.kind == "S":
            return _as_text(value.tobytes())  # version 5 stores text as characters
        if value.dtype.hasobject:
            strings = [_as_text(part) for part in value.ravel()]
            return strings if value.ndim else strings[0]
        return value if value.ndim else value[()].item() if value.dtype.kind in "fiub" else value[()]


def _key(name: str) -> Any:
    """Return the dictionary key that a group name encodes; version 4 writes a slash as a backslash."""
    try:
        key = ast.literal_eval(name.replace("\\\\", "/"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name
    return key if isinstance(key, str | int | float | bytes) else name


def _kind(node: Any) -> str:
    """Return the name of a node's type; version 5 points at a table of types, which is not followed."""
    name = _attribute(node, "base_type") or _attribute(node, "type")
    return re.sub(r"<class '(.*)'>", r"\1", name)


def _attribute(node: Any, name: str) -> str:
    value = node.attrs.get(name)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.ravel()[0]
    return _as_text(value) if isinstance(value, str | bytes) else ""


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
