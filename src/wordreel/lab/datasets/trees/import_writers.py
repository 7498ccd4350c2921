"""Write imported items to a library: features and captions of items without a file, or captions of files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wordreel.catalogue.captions import Line, put_captions, same_captions
from wordreel.catalogue.clips import FEATURES, cut_clips
from wordreel.catalogue.named_contents import NamedContents
from wordreel.catalogue.paths import imported_path
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.remove import drop_tracks
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks.track_files import IMPORTED_FINGERPRINT, StagedTrack
from wordreel.errors import DatasetError, NextStep, UnsafePickle
from wordreel.ingest.extract import ExpertResult
from wordreel.ingest.file_processor import missing_experts
from wordreel.ingest.record_file import record_failure, record_file
from wordreel.ingest.tasks import AddTask, FailedFile, ProcessedFile
from wordreel.lab.datasets.trees.tree import Tree
from wordreel.lab.datasets.types import Caption, Item, Missing
from wordreel.media.types import MediaInfo
from wordreel.types import Absent, Track

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
    """The hash that stands in for a file's: of dataset, id and the features the item first came with."""
    parts = sorted((result.expert, result.staged.hash if result.staged else "") for result in results)
    return hashlib.sha256(json.dumps([FEATURES, dataset, item, parts]).encode()).hexdigest()


def _duration(tracks: Sequence[Track]) -> float:
    """The end of the last row with a known time; 0 if there is none."""
    return max([0.0, *(float(np.max(track.times)) for track in tracks)])
