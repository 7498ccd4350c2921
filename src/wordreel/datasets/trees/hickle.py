"""Reading hickle files without hickle: they are HDF5 files whose groups are dictionaries and lists.

Three ages of the format are known. Dictionary keys are names of groups, as Python writes them: `'key'` in
versions 3 and 4, where the value lies one level down, `"key"` in version 5, where the value is there itself;
keys with a slash are a pair (key, value) in version 5. What types the writer pickled beside the values is
not looked at: the values are arrays, numbers, text and lists of them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.datasets.trees.hdf5 import array, child, opened, text
from wordreel.errors import DatasetError

DEPTH = 8
NUMBERED = re.compile(r"data_?(\d+)")


def read_hickle(path: Path, max_bytes: int) -> Any:
    """What was dumped, without sets, complex objects and anything that would have to be unpickled."""
    with opened(path) as file:
        top = [name for name in ("data_0", "data") if name in file]
        if not top:
            raise DatasetError("not a hickle file: it has neither data_0 nor data")
        return _Reader(max_bytes).value(child(file, top[0]), 0)


class _Reader:
    def __init__(self, left: int) -> None:
        self.left = left

    def value(self, node: Any, depth: int) -> Any:
        import h5py

        if depth > DEPTH:
            raise DatasetError("nested deeper than features are")
        if isinstance(node, h5py.Dataset):
            return self.leaf(node)
        kind = _kind(node)
        if kind == "dict" or (not kind and any(_quoted(name) for name in node)):
            return dict(pair for name in node for pair in self.items(child(node, name), name, depth + 1))
        names = sorted(
            (name for name in node if NUMBERED.fullmatch(name)),
            key=lambda name: int(NUMBERED.fullmatch(name)[1]),  # type: ignore[index]
        )
        return [self.value(child(node, name), depth + 1) for name in names]

    def items(self, node: Any, name: str, depth: int) -> list[tuple[Any, Any]]:
        """The entry of a dictionary that a child is; older files cut a key with a slash into two groups."""
        import h5py

        if _attribute(node, "key_base_type") == "key_value":
            key, value = self.value(child(node, "data0"), depth), self.value(child(node, "data1"), depth)
            return [(key, value)]
        inner = [deeper for deeper in ("data_0", "data") if isinstance(node, h5py.Group) and deeper in node]
        if _kind(node) == "dict_item" and inner:
            return [(_key(name), self.value(child(node, inner[0]), depth + 1))]
        if isinstance(node, h5py.Group) and name.startswith("'") and not name.endswith("'"):
            if depth > DEPTH:
                raise DatasetError("nested deeper than features are")
            return [
                pair for rest in node for pair in self.items(child(node, rest), f"{name}/{rest}", depth + 1)
            ]
        return [(_key(name), self.value(node, depth + 1))]

    def leaf(self, node: Any) -> Any:
        kind = _kind(node)
        if node.shape is None or kind in ("none", "None"):
            return None
        self.left -= int(node.nbytes)
        if self.left < 0:
            raise DatasetError("the arrays are larger together than a feature file may be")
        found = array(node)
        if _attribute(node, "str_type") == "str" and found.dtype.kind == "S":
            return text(found.tobytes())  # version 5 keeps text as characters
        if found.dtype.hasobject:
            strings = [text(part) for part in found.ravel()]
            return strings if found.ndim else strings[0]
        return found if found.ndim else found[()].item() if found.dtype.kind in "fiub" else found[()]


def _key(name: str) -> Any:
    """The key a name stands for; version 4 writes a slash in it as a backslash."""
    try:
        key = ast.literal_eval(name.replace("\\\\", "/"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name
    return key if isinstance(key, str | int | float | bytes) else name


def _quoted(name: str) -> bool:
    return name[:1] in "'\""


def _kind(node: Any) -> str:
    """The plain name of the type of a node; version 5 points at a table, which is not followed."""
    said = _attribute(node, "base_type") or _attribute(node, "type")
    return re.sub(r"<class '(.*)'>", r"\1", said)


def _attribute(node: Any, name: str) -> str:
    value = node.attrs.get(name)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.ravel()[0]
    return text(value) if isinstance(value, str | bytes) else ""
