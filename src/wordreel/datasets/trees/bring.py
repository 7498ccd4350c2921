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
from wordreel.datasets.trees.split_lists import unique_ids
from wordreel.datasets.trees.tree import Tree
from wordreel.datasets.types import Item, Missing
from wordreel.errors import DatasetError, NextStep
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
    tree, names, left_out = _for_splits(tree, splits)
    chosen = _chosen(tree, experts)
    items = _items(tree, names, chosen)
    report = ImportReport(tree.kind, tree.dataset, missing=[*tree.missing, *left_out])
    with store.writing():
        store.track_files.clear_staging()
        work = Items(store, tree, chosen, report) if chosen else Captions(store, tree, report)
        for start in range(0, len(items), BATCH):
            work.batch(items[start : start + BATCH])
            if progress:
                progress(min(start + BATCH, len(items)), len(items), len(report.failed))
        store.track_files.clear_staging()
    report.seconds = time.monotonic() - began
    return report


def _chosen(tree: Tree, experts: Sequence[str] | None) -> tuple[str, ...]:
    unknown = [name for name in experts or () if name not in tree.experts]
    if unknown:
        raise DatasetError(
            f"{tree.root} has no expert {unknown[0]!r}; it has {', '.join(tree.experts) or 'none'}"
        )
    return tuple(experts) if experts else tuple(tree.experts)


def _for_splits(tree: Tree, splits: Sequence[str] | None) -> tuple[Tree, list[str], list[Missing]]:
    """The tree to read the splits from, their names, and what is left out of an import of everything.

    Splits for which the published code reads other features are imported by themselves.
    """
    names = list(splits) if splits else list(tree.splits)
    trees = {name: tree.for_split(name) for name in names}
    main = tree if any(one is tree for one in trees.values()) or not names else trees[names[0]]
    apart = [name for name in names if trees[name] is not main]
    if not apart:
        return main, names, []
    alone = NextStep("import them by themselves", f"import {tree.root} --split {','.join(apart)}")
    if splits:
        raise DatasetError(f"{', '.join(apart)} read other feature files than the other splits", alone)
    note = Missing(
        f"the splits {', '.join(apart)}, which read other feature files",
        tree.root,
        f"the other splits; {alone.for_command_line()}",
    )
    return main, [name for name in names if name not in apart], [note]


def _items(tree: Tree, names: Sequence[str], experts: Sequence[str]) -> list[Entry]:
    entries: dict[str, Entry] = {}
    for split in map(tree.split, names):
        for item in split.items:
            entry = entries.setdefault(item.id, Entry(item, {}))
            entry.captions[split.name] = item.captions
    if not names:
        entries = {item: Entry(Item(item), {}) for item in unique_ids(map(tree.ids, experts))}
    if not entries:
        raise DatasetError(f"{tree.root} names no items to import")
    if experts and names:
        known = set(unique_ids(map(tree.ids, experts)))
        if known and not any(item in known for item in entries):
            listed = next(iter(entries))
            raise DatasetError(
                f"no item of {', '.join(names)} is in the feature files: the lists have {listed!r}, "
                f"the features {min(known)!r}. They are of different datasets"
            )
    return list(entries.values())
