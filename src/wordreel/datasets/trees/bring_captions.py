"""Captions of a tree into the library: for items just imported, or for files that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wordreel.datasets.trees.bring_report import Entry, ImportReport
from wordreel.datasets.trees.tree import Tree
from wordreel.library.captions import put_captions, same_captions
from wordreel.library.store import LibraryStore


@dataclass
class Captions:
    """Captions for files that the library has."""

    store: LibraryStore
    tree: Tree
    report: ImportReport

    def __post_init__(self) -> None:
        self.by_name: dict[str, str] = {}
        for file in self.store.files():
            self.by_name.setdefault(Path(file.path).name, file.content)
            self.by_name.setdefault(Path(file.path).stem, file.content)

    def batch(self, entries: Sequence[Entry]) -> None:
        with self.store.catalogue.transaction():
            for entry in entries:
                item = entry.item
                file = self.store.file(item.path) if item.path else None
                content = file.content if file else self.by_name.get(item.id)
                if content is None:
                    where = str(Path(item.path).parent) if item.path else "FOLDER"
                    reason = f"not in the library; `wordreel add {where}` first"
                    self.report.failed.append((item.path or item.id, reason))
                elif tell(self.store, content, self.tree.dataset, entry, self.report):
                    self.report.updated += 1
                else:
                    self.report.skipped += 1


def tell(store: LibraryStore, content: str, dataset: str, entry: Entry, report: ImportReport) -> bool:
    """Put an item's captions; whether anything changed."""
    changed = False
    for split in entry.captions:
        lines = entry.lines(split)
        report.captions[split] = report.captions.get(split, 0) + len(lines)
        if not same_captions(store.catalogue, content, dataset, split, lines):
            put_captions(store.catalogue, content, dataset, split, lines)
            changed = True
    return changed
