"""What is on the disk after a power cut, computed from recorded calls.

A file's data is durable once the file is flushed, a name (created, renamed, deleted) once its folder is. What
is not durable may be lost or not, data and names each by themselves: a file can be there without its data,
and data without its name.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.crash.faults import Call

Lost = Literal["everything", "data", "names"]  # that was not flushed
LOST: tuple[Lost, ...] = ("everything", "data", "names")
MAPPED = "-shm"  # SQLite shares memory through this file and never reads what an earlier boot left in it
Tree = dict[str, bytes | None]  # None: a folder


@dataclass
class _Node:
    """A file or a folder: what the processes see, and what is durable of it."""

    is_folder: bool
    data: bytearray = field(default_factory=bytearray)
    durable_data: bytes = b""
    entries: dict[str, _Node] = field(default_factory=dict)
    durable_entries: dict[str, _Node] = field(default_factory=dict)


class Disk:
    """A folder and everything below it, to which recorded calls are applied one by one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._top = _load(root)

    def apply(self, call: Call) -> None:
        if call.kind in "xn":
            return
        if call.kind in "cm":
            parent, name = self._parent(call.path)
            parent.entries[name] = _Node(call.kind == "m")
        elif call.kind == "u":
            parent, name = self._parent(call.path)
            del parent.entries[name]
        elif call.kind == "r":
            parent, name = self._parent(call.path)
            target, new_name = self._parent(call.other)
            target.entries[new_name] = parent.entries.pop(name)
        elif (node := self._find(call.path)) is not None:  # a file that is deleted may be open still
            self._change(node, call)

    def _change(self, node: _Node, call: Call) -> None:
        if call.kind == "s":
            node.durable_data, node.durable_entries = bytes(node.data), dict(node.entries)
        elif call.kind == "t":
            del node.data[call.offset :]
            node.data.extend(bytes(call.offset - len(node.data)))
        else:
            node.data.extend(bytes(max(0, call.offset - len(node.data))))
            node.data[call.offset : call.offset + len(call.data)] = call.data

    def tree(self) -> Tree:
        """All files and folders, by path, as processes see them."""
        return dict(self._walk(self._top, "", False, True))

    def after_power_cut(self, lost: Lost) -> Tree:
        """All files and folders if the power fails now and this is lost of what was not flushed."""
        return dict(self._walk(self._top, "", lost != "data", lost == "names"))

    def _walk(
        self, folder: _Node, path: str, names_lost: bool, data_kept: bool
    ) -> Iterator[tuple[str, bytes | None]]:
        entries = folder.durable_entries if names_lost else folder.entries
        for name, node in sorted(entries.items()):
            below = f"{path}{name}"
            if node.is_folder:
                yield below, None
                yield from self._walk(node, f"{below}/", names_lost, data_kept)
            elif not name.endswith(MAPPED):
                yield below, bytes(node.data) if data_kept else node.durable_data

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._top
        for name in Path(path).relative_to(self.root).parts:
            node = node.entries.get(name) if node is not None else None
        return node

    def _parent(self, path: str) -> tuple[_Node, str]:
        node = self._find(str(Path(path).parent))
        assert node is not None, path
        return node, Path(path).name


def write_tree(tree: Tree, folder: Path) -> None:
    """Replace a folder by a tree."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, data in tree.items():
        if data is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(data)


def _load(path: Path) -> _Node:
    if not path.is_dir():
        data = path.read_bytes()
        return _Node(False, bytearray(data), data)
    entries = {entry.name: _load(entry) for entry in path.iterdir()}
    return _Node(True, entries=entries, durable_entries=dict(entries))
