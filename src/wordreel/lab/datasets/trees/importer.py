"""Import a feature tree into a library: features as tracks of items without a file, captions by split.

An item is `dataset:NAME/id`. Its experts are prefixed with the layout (`ce/audio`), so that an imported
`speech` is never taken for wordreel's own, and their fingerprint names the file they came from. Items that
are there already are left alone: an import that was killed resumes, and more experts can be added later.

A tree without features (CLIP4Clip's) adds captions to the files of the library that they are about.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.trees.import_writers import CaptionWriter, FeatureWriter, ImportItem, ImportReport
from wordreel.lab.datasets.trees.split_lists import unique_ids
from wordreel.lab.datasets.trees.tree import Tree
from wordreel.lab.datasets.types import Item, Missing
from wordreel.progress import Progress

BATCH_SIZE = 128  # items per commit
DATASET_NAME = re.compile(r"[^\W_][\w.+-]*")


@dataclass(frozen=True)
class ImportProgress(Progress):
    """Progress of an import: `done` of `total` items."""

    failures: int = 0


def import_tree(
    store: LibraryStore,
    tree: Tree,
    splits: Sequence[str] | None = None,
    experts: Sequence[str] | None = None,
    progress: Callable[[ImportProgress], None] | None = None,
) -> ImportReport:
    """Import features and captions into a library.

    Args:
        store: The library.
        tree: What to import, from `open_tree`.
        splits: The splits to import; None imports all that the tree lists, or all items of a tree
            without lists.
        experts: The experts to import; None imports all.
        progress: Called after every batch of items.

    Returns:
        What was added, updated, skipped and failed, and which files are missing.

    Raises:
        DatasetError: The tree lacks an expert or a split, names no items, or its lists and features
            belong to different datasets.
        UnsafePickle: A file that holds the features of all items was refused. Nothing has been written.
    """
    started = time.monotonic()
    if not DATASET_NAME.fullmatch(tree.dataset):
        raise DatasetError(
            f"{tree.dataset!r} cannot be the name of a dataset", NextStep("name it with --dataset")
        )
    tree, names, left_out = _for_splits(tree, splits)
    chosen = _known_experts(tree, experts)
    items = _items(tree, names, chosen)
    report = ImportReport(tree.kind, tree.dataset, missing=[*tree.missing, *left_out])
    with store.writing():
        store.track_files.clear_staging()
        writer = FeatureWriter(store, tree, chosen, report) if chosen else CaptionWriter(store, tree, report)
        for start in range(0, len(items), BATCH_SIZE):
            batch = items[start : start + BATCH_SIZE]
            writer.write(batch)
            if progress:
                progress(
                    ImportProgress("importing items", start + len(batch), len(items), len(report.failed))
                )
        store.track_files.clear_staging()
    report.seconds = time.monotonic() - started
    return report


def _known_experts(tree: Tree, experts: Sequence[str] | None) -> tuple[str, ...]:
    unknown = [name for name in experts or () if name not in tree.experts]
    if unknown:
        raise DatasetError(
            f"{tree.root} has no expert {unknown[0]!r}; it has {', '.join(tree.experts) or 'none'}"
        )
    return tuple(experts) if experts else tuple(tree.experts)


def _for_splits(tree: Tree, splits: Sequence[str] | None) -> tuple[Tree, list[str], list[Missing]]:
    """The tree to read the splits from, their names, and what an import of all splits leaves out.

    Splits for which the published code reads other feature files are imported by themselves.
    """
    names = list(splits) if splits else list(tree.splits)
    trees = {name: tree.for_split(name) for name in names}
    main = tree if any(one is tree for one in trees.values()) or not names else trees[names[0]]
    apart = [name for name in names if trees[name] is not main]
    if not apart:
        return main, names, []
    step = NextStep("import them by themselves", f"import {tree.root} --split {','.join(apart)}")
    if splits:
        raise DatasetError(f"{', '.join(apart)} read other feature files than the other splits", step)
    note = Missing(
        f"the splits {', '.join(apart)}, which read other feature files",
        tree.root,
        f"the other splits; {step.for_command_line()}",
    )
    return main, [name for name in names if name not in apart], [note]


def _items(tree: Tree, names: Sequence[str], experts: Sequence[str]) -> list[ImportItem]:
    items: dict[str, ImportItem] = {}
    for split in map(tree.split, names):
        for item in split.items:
            items.setdefault(item.id, ImportItem(item, {})).captions[split.name] = item.captions
    if not names:
        items = {item: ImportItem(Item(item), {}) for item in unique_ids(map(tree.ids, experts))}
    if not items:
        raise DatasetError(f"{tree.root} names no items to import")
    if experts and names:
        known = set(unique_ids(map(tree.ids, experts)))
        if known and not any(item in known for item in items):
            raise DatasetError(
                f"no item of {', '.join(names)} is in the feature files: the lists have "
                f"{next(iter(items))!r}, the features {min(known)!r}. They are of different datasets"
            )
    return list(items.values())
