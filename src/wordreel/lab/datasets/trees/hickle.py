"""Safe reading of hickle files: HDF5 files whose groups are dictionaries and lists.

The format has three generations. Dictionary keys are group names in Python syntax: `'key'` in versions 3 and
4, where the value is one level down; `"key"` in version 5, where the value is the group itself; keys with a
slash are a pair (key, value) in version 5. Types that the writer pickled beside the values are ignored:
values are arrays, numbers, text and lists of them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees.hdf5 import as_text, get_child, open_hdf5, read_array

MAX_DEPTH = 8
NUMBERED = re.compile(r"data_?(\d+)")


def read_hickle(path: Path, max_bytes: int) -> Any:
    """Load a hickle file; sets, complex objects and anything pickled are ignored."""
    with open_hdf5(path) as file:
        top = [name for name in ("data_0", "data") if name in file]
        if not top:
            raise DatasetError("not a hickle file: it has neither data_0 nor data")
        return _Reader(max_bytes).value(get_child(file, top[0]), 0)


class _Reader:
    def __init__(self, left: int) -> None:
        self.left = left

    def value(self, node: Any, depth: int) -> Any:
        import h5py

        if depth > MAX_DEPTH:
            raise DatasetError("nested deeper than features are")
        if isinstance(node, h5py.Dataset):
            return self.leaf(node)
        kind = _kind(node)
        if kind == "dict" or (not kind and any(_quoted(name) for name in node)):
            return dict(pair for name in node for pair in self.items(get_child(node, name), name, depth + 1))
        names = sorted(
            (name for name in node if NUMBERED.fullmatch(name)),
            key=lambda name: int(NUMBERED.fullmatch(name)[1]),  # type: ignore[index]
        )
        return [self.value(get_child(node, name), depth + 1) for name in names]

    def items(self, node: Any, name: str, depth: int) -> list[tuple[Any, Any]]:
        """The dictionary entries in a child; older files split a key with a slash into two groups."""
        import h5py

        if _attribute(node, "key_base_type") == "key_value":
            key, value = (
                self.value(get_child(node, "data0"), depth),
                self.value(get_child(node, "data1"), depth),
            )
            return [(key, value)]
        inner = [deeper for deeper in ("data_0", "data") if isinstance(node, h5py.Group) and deeper in node]
        if _kind(node) == "dict_item" and inner:
            return [(_key(name), self.value(get_child(node, inner[0]), depth + 1))]
        if isinstance(node, h5py.Group) and name.startswith("'") and not name.endswith("'"):
            if depth > MAX_DEPTH:
                raise DatasetError("nested deeper than features are")
            return [
                pair
                for rest in node
                for pair in self.items(get_child(node, rest), f"{name}/{rest}", depth + 1)
            ]
        return [(_key(name), self.value(node, depth + 1))]

    def leaf(self, node: Any) -> Any:
        kind = _kind(node)
        if node.shape is None or kind in ("none", "None"):
            return None
        self.left -= int(node.nbytes)
        if self.left < 0:
            raise DatasetError("the arrays are larger together than a feature file may be")
        value = read_array(node)
        if _attribute(node, "str_type") == "str" and value.dtype.kind == "S":
            return as_text(value.tobytes())  # version 5 stores text as characters
        if value.dtype.hasobject:
            strings = [as_text(part) for part in value.ravel()]
            return strings if value.ndim else strings[0]
        return value if value.ndim else value[()].item() if value.dtype.kind in "fiub" else value[()]


def _key(name: str) -> Any:
    """The dictionary key that a group name encodes; version 4 writes a slash as a backslash."""
    try:
        key = ast.literal_eval(name.replace("\\\\", "/"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name
    return key if isinstance(key, str | int | float | bytes) else name


def _quoted(name: str) -> bool:
    return name[:1] in "'\""


def _kind(node: Any) -> str:
    """The name of a node's type; version 5 points at a table of types, which is not followed."""
    name = _attribute(node, "base_type") or _attribute(node, "type")
    return re.sub(r"<class '(.*)'>", r"\1", name)


def _attribute(node: Any, name: str) -> str:
    value = node.attrs.get(name)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.ravel()[0]
    return as_text(value) if isinstance(value, str | bytes) else ""
