"""Bring a tree into a library: features as tracks of items without a file, captions by split.

An item is `dataset:NAME/id`. Its experts have the layout's name before theirs (`ce/audio`), so that a foreign
`speech` is never taken for ours, and a fingerprint that says which file they came from. What is there already
is left alone, so an import that was killed goes on where it stopped; asking for more experts adds them.

A tree without features (CLIP4Clip's) gives captions to the files of the library that it is about.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from wordreel.datasets.trees.bring_captions import Captions
from wordreel.datasets.trees.bring_items import Items
from wordreel.datasets.trees.bring_report import Entry, ImportReport
from wordreel.datasets.trees.layout import Tree
from wordreel.datasets.trees.lists import all_ids
from wordreel.datasets.types import Item
from wordreel.errors import DatasetError
from wordreel.library.store import LibraryStore

BATCH = 128  # items between two commits
NAME = re.compile(r"[^\W_][\w.+-]*")

Progress = Callable[[int, int, int], None]  # items done, items in all, failures


def bring(
    store: LibraryStore,
    tree: Tree,
    splits: Sequence[str] | None = None,
    experts: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import the splits named (or all that the tree lists, or all items of a tree without lists)."""
    began = time.monotonic()
    if not NAME.fullmatch(tree.dataset):
        raise DatasetError(f"{tree.dataset!r} is no name for a dataset; give one with --dataset")
    chosen = _chosen(tree, experts)
    items = _items(tree, splits, chosen)
    report = ImportReport(tree.kind, tree.dataset, missing=list(tree.missing))
    with store.writing():
        store.track_files.discard_passing()
        work = Items(store, tree, chosen, report) if chosen else Captions(store, tree, report)
        for start in range(0, len(items), BATCH):
            work.batch(items[start : start + BATCH])
            if progress:
                progress(min(start + BATCH, len(items)), len(items), len(report.failed))
        store.track_files.discard_passing()
    report.seconds = time.monotonic() - began
    return report


def _chosen(tree: Tree, experts: Sequence[str] | None) -> tuple[str, ...]:
    unknown = [name for name in experts or () if name not in tree.experts]
    if unknown:
        raise DatasetError(
            f"{tree.root} has no expert {unknown[0]!r}; it has {', '.join(tree.experts) or 'none'}"
        )
    return tuple(experts) if experts else tuple(tree.experts)


def _items(tree: Tree, splits: Sequence[str] | None, experts: Sequence[str]) -> list[Entry]:
    names = list(splits) if splits else list(tree.splits)
    entries: dict[str, Entry] = {}
    for split in map(tree.split, names):
        for item in split.items:
            entry = entries.setdefault(item.id, Entry(item, {}))
            entry.captions[split.name] = item.captions
    if not names:
        entries = {item: Entry(Item(item), {}) for item in all_ids(map(tree.ids, experts))}
    if not entries:
        raise DatasetError(f"{tree.root} names no items to import")
    if experts and names:
        known = set(all_ids(map(tree.ids, experts)))
        if known and not any(item in known for item in entries):
            listed = next(iter(entries))
            raise DatasetError(
                f"no item of {', '.join(names)} is in the feature files: the lists have {listed!r}, "
                f"the features {min(known)!r}. They are of different datasets"
            )
    return list(entries.values())
