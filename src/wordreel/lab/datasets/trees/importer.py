"""Import a feature tree into a library: features as tracks of items without a file, captions by split.

An item is `dataset:NAME/id`. Its experts are prefixed with the layout (`ce/audio`), so that an imported
`speech` is never taken for wordreel's own, and their fingerprint names the file they came from. Items that
are there already are left alone: an import that was killed resumes, and more experts can be added later.

A tree without features (CLIP4Clip's) adds captions to the files of the library that they are about.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wordreel.catalogue.captions import Line, NamedContents, put_captions, same_captions
from wordreel.catalogue.clips import FEATURES, cut_clips
from wordreel.catalogue.paths import imported_path
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.remove import drop_tracks
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import IMPORTED_FINGERPRINT, StagedTrack
from wordreel.errors import DatasetError, NextStep, UnsafePickle
from wordreel.ingest.extract import ExpertResult
from wordreel.ingest.file_processor import missing_experts
from wordreel.ingest.record_file import record_failure, record_file
from wordreel.ingest.tasks import AddTask, FailedFile, ProcessedFile
from wordreel.lab.datasets.trees.split_lists import unique_ids
from wordreel.lab.datasets.trees.tree import Tree
from wordreel.lab.datasets.types import Caption, Item, Missing
from wordreel.media.types import MediaInfo
from wordreel.progress import Progress
from wordreel.types import Absent, Track

BATCH_SIZE = 128  # items per commit
DATASET_NAME = re.compile(r"[^\W_][\w.+-]*")
NO_FILE = FileStamp(0, 0, 0, 0)


@dataclass
class ImportReport:
    """The result of an import. Each item is added, updated or skipped, or failed as a whole."""

    kind: str
    dataset: str
    added: int = 0
    updated: int = 0  # items that got more experts or other captions
    skipped: int = 0  # already there
    captions: dict[str, int] = field(default_factory=dict)  # per split, of imported and skipped items
    experts: dict[str, tuple[int, int]] = field(default_factory=dict)  # read now: (present, absent)
    failed: list[tuple[str, str]] = field(default_factory=list)  # (path or item, reason)
    missing: list[Missing] = field(default_factory=list)
    seconds: float = 0.0


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
    """Return the tree to read the splits from, their names, and what an import of all leaves out.

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


@dataclass(frozen=True)
class ImportItem:
    """An item with its captions by split."""

    item: Item
    captions: dict[str, tuple[Caption, ...]]

    def lines(self, split: str) -> list[Line]:
        return [(caption.text, caption.start, caption.end) for caption in self.captions[split]]


@dataclass
class CaptionWriter:
    """Writes captions of files that are in the library."""

    store: LibraryStore
    tree: Tree
    report: ImportReport

    def __post_init__(self) -> None:
        self._named = NamedContents.of(self.store.files())

    def write(self, items: Sequence[ImportItem]) -> None:
        """Write the captions of a batch in one transaction."""
        with self.store.catalogue.transaction():
            for entry in items:
                item = entry.item
                file = self.store.file(item.path) if item.path else None
                content = file.content if file else self._named.find(item.id)
                if content is None:
                    folder = str(Path(item.path).parent) if item.path else "FOLDER"
                    step = NextStep("add it first", f"add {folder}")
                    reason = f"not in the library; {step.for_command_line()}"
                    self.report.failed.append((item.path or item.id, reason))
                elif write_captions(self.store, content, self.tree.dataset, entry, self.report):
                    self.report.updated += 1
                else:
                    self.report.skipped += 1


def write_captions(
    store: LibraryStore, content: str, dataset: str, entry: ImportItem, report: ImportReport
) -> bool:
    """Store an item's captions; returns whether anything changed."""
    changed = False
    for split in entry.captions:
        lines = entry.lines(split)
        report.captions[split] = report.captions.get(split, 0) + len(lines)
        if not same_captions(store.catalogue, content, dataset, split, lines):
            put_captions(store.catalogue, content, dataset, split, lines)
            changed = True
    return changed


@dataclass(frozen=True)
class _ItemFeatures:
    """The features read of one item; `content` is empty if the library does not have the item yet."""

    path: str
    content: str
    results: dict[str, Track | Absent]

    @property
    def tracks(self) -> list[Track]:
        return [result for result in self.results.values() if isinstance(result, Track)]


@dataclass
class FeatureWriter:
    """Writes features and captions of items without a file."""

    store: LibraryStore
    tree: Tree
    experts: tuple[str, ...]
    report: ImportReport

    def __post_init__(self) -> None:
        kind = self.tree.kind
        self._names = {expert: f"{kind}/{expert}" for expert in self.experts}
        self._fingerprints = {
            self._names[expert]: f"{IMPORTED_FINGERPRINT}{kind}/{self.tree.source(expert)}"
            for expert in self.experts
        }

    def write(self, items: Sequence[ImportItem]) -> None:
        """Read a batch, write its tracks, then record them in one transaction."""
        batch = list(self._read_batch(items))
        tracks = [track for _, one in batch if isinstance(one, _ItemFeatures) for track in one.tracks]
        staged = self.store.track_files.stage_all(tracks)
        self.store.track_files.commit_all(staged)
        next_staged = iter(staged)
        replaced: list[str] = []
        with self.store.catalogue.transaction():
            for entry, features in batch:
                if isinstance(features, FailedFile):
                    record_failure(self.store, features, "")
                    continue
                processed = self._processed(entry.item.id, features, next_staged)
                if processed.results or processed.info:
                    replaced += [row.hash for row in self.store.tracks(processed.content) if row.hash]
                    record_file(self.store, processed)
                changed = write_captions(self.store, processed.content, self.tree.dataset, entry, self.report)
                if processed.info:
                    self.report.added += 1
                elif processed.results or changed:
                    self.report.updated += 1
                else:
                    self.report.skipped += 1
        drop_tracks(self.store.catalogue, self.store.track_files, replaced)

    def _read_batch(
        self, items: Sequence[ImportItem]
    ) -> Iterator[tuple[ImportItem, _ItemFeatures | FailedFile]]:
        for entry in items:
            path = imported_path(self.tree.dataset, entry.item.id)
            if not _is_encodable(path):
                self.report.failed.append((ascii(entry.item.id), "an id that is not text"))
                continue
            known = self.store.file(path)
            content = known.content if known else ""
            try:
                yield entry, self._read(path, entry.item.id, content)
            except UnsafePickle:
                raise  # the file holds all items
            except Exception as error:
                reason = str(error) if isinstance(error, DatasetError) else f"{type(error).__name__}: {error}"
                self.report.failed.append((path, reason))
                yield entry, FailedFile(AddTask(path, NO_FILE, True, 0), reason, content)

    def _read(self, path: str, item: str, content: str) -> _ItemFeatures:
        needed = set(self._fingerprints)
        if content:
            needed = set(missing_experts(self.store.catalogue, content, self._fingerprints))
        results: dict[str, Track | Absent] = {}
        errors: list[str] = []
        for expert, name in self._names.items():
            try:
                if name in needed:
                    results[name] = self.tree.read(expert, item)
            except DatasetError as error:  # the other experts may be sound
                errors.append(str(error))
        if errors and not results and not content:
            raise DatasetError(errors[0])
        self.report.failed += [(path, error) for error in errors]
        for name, result in results.items():
            present, absent = self.report.experts.get(name, (0, 0))
            is_present = isinstance(result, Track)
            self.report.experts[name] = (present + is_present, absent + (not is_present))
        return _ItemFeatures(path, content, results)

    def _processed(
        self, item: str, features: _ItemFeatures, next_staged: Iterator[StagedTrack]
    ) -> ProcessedFile:
        results = tuple(
            ExpertResult.of(
                name,
                self._fingerprints[name],
                result,
                next(next_staged) if isinstance(result, Track) else None,
            )
            for name, result in features.results.items()
        )
        info = None if features.content else MediaInfo("video", FEATURES, _duration(features.tracks))
        content = features.content or _content_hash(self.tree.dataset, item, results)
        media = info or self.store.info(content)
        # New clips get new ids: embeddings under the old ids are of other features.
        clips = tuple(cut_clips(media, None)) if results and media else ()
        task = AddTask(features.path, NO_FILE, True, 0, content)
        return ProcessedFile(task, content, info, results, clips, 0.0)


def _is_encodable(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


def _content_hash(dataset: str, item: str, results: Sequence[ExpertResult]) -> str:
    """Return the hash that stands in for a file's.

    Of dataset, id and the features the item first came with.
    """
    parts = sorted((result.expert, result.staged.hash if result.staged else "") for result in results)
    return hashlib.sha256(json.dumps([FEATURES, dataset, item, parts]).encode()).hexdigest()


def _duration(tracks: Sequence[Track]) -> float:
    """Return the end of the last row with a known time; 0 if there is none."""
    return max([0.0, *(float(np.max(track.times)) for track in tracks)])
