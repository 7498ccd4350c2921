"""Items without files into the library: features as tracks, with the captions of the items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.datasets.trees.bring_captions import tell
from wordreel.datasets.trees.bring_report import Entry, ImportReport
from wordreel.datasets.trees.tree import Tree
from wordreel.errors import DatasetError, UnsafePickle
from wordreel.library.clips import FEATURES, cut_clips
from wordreel.library.ingest_file import (
    AddTask,
    ExpertResult,
    FailedFile,
    ProcessedFile,
    missing_experts,
    record_failure,
    record_file,
)
from wordreel.library.paths import imported_path
from wordreel.library.remove import drop_tracks
from wordreel.library.scan import FileStamp
from wordreel.library.store import LibraryStore
from wordreel.library.tracks import IMPORTED_FINGERPRINT, StagedTrack
from wordreel.media.types import MediaInfo
from wordreel.types import Absent, Track

NO_FILE = FileStamp(0, 0, 0, 0)


@dataclass(frozen=True)
class _Answers:
    """What was read of one item; `content` is empty if the library does not have it yet."""

    path: str
    content: str
    answers: dict[str, Track | Absent]

    @property
    def tracks(self) -> list[Track]:
        return [answer for answer in self.answers.values() if isinstance(answer, Track)]


@dataclass
class Items:
    """Items without files: tracks and captions."""

    store: LibraryStore
    tree: Tree
    experts: tuple[str, ...]
    report: ImportReport

    def __post_init__(self) -> None:
        kind = self.tree.kind
        self.names = {expert: f"{kind}/{expert}" for expert in self.experts}
        self.fingerprints = {
            self.names[expert]: f"{IMPORTED_FINGERPRINT}{kind}/{self.tree.source(expert)}"
            for expert in self.experts
        }

    def batch(self, entries: Sequence[Entry]) -> None:
        """Read, write the tracks, then tell the catalogue of all items at once."""
        read = list(self._read_all(entries))
        tracks = [a for _, known in read if isinstance(known, _Answers) for a in known.tracks]
        staged = self.store.track_files.stage_all(tracks)
        self.store.track_files.commit_all(staged)
        places = iter(staged)
        replaced: list[str] = []
        with self.store.catalogue.transaction():
            for entry, answers in read:
                if isinstance(answers, FailedFile):
                    record_failure(self.store, answers, "")
                    continue
                ready = self._ready(entry.item.id, answers, places)
                if ready.results or ready.info:
                    replaced += [row.hash for row in self.store.tracks(ready.content) if row.hash]
                    record_file(self.store, ready, commit_tracks=False)
                changed = tell(self.store, ready.content, self.tree.dataset, entry, self.report)
                if ready.info:
                    self.report.added += 1
                elif ready.results or changed:
                    self.report.updated += 1
                else:
                    self.report.skipped += 1
        drop_tracks(self.store.catalogue, self.store.track_files, replaced)

    def _read_all(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, _Answers | FailedFile]]:
        for entry in entries:
            path = imported_path(self.tree.dataset, entry.item.id)
            if not _storable(path):
                self.report.failed.append((ascii(entry.item.id), "an id that is not text"))
                continue
            known = self.store.file(path)
            content = known.content if known else ""
            try:
                yield entry, self._read(path, entry.item.id, content)
            except UnsafePickle:
                raise  # of a file that holds all items
            except Exception as error:
                reason = str(error) if isinstance(error, DatasetError) else f"{type(error).__name__}: {error}"
                self.report.failed.append((path, reason))
                yield entry, FailedFile(AddTask(path, NO_FILE, True, 0), reason, content)

    def _read(self, path: str, item: str, content: str) -> _Answers:
        wanted = set(self.fingerprints)
        if content:
            wanted = set(missing_experts(self.store.catalogue, content, self.fingerprints))
        answers: dict[str, Track | Absent] = {}
        errors: list[str] = []
        for expert, name in self.names.items():
            try:
                if name in wanted:
                    answers[name] = self.tree.read(expert, item)
            except DatasetError as error:  # the other experts may be sound
                errors.append(str(error))
        if errors and not answers and not content:
            raise DatasetError(errors[0])
        self.report.failed += [(path, error) for error in errors]
        for name, answer in answers.items():
            present, absent = self.report.experts.get(name, (0, 0))
            there = isinstance(answer, Track)
            self.report.experts[name] = (present + there, absent + (not there))
        return _Answers(path, content, answers)

    def _ready(self, item: str, known: _Answers, places: Iterator[StagedTrack]) -> ProcessedFile:
        made = tuple(
            ExpertResult(
                name, self.fingerprints[name], answer, next(places) if isinstance(answer, Track) else None
            )
            for name, answer in known.answers.items()
        )
        info = None if known.content else MediaInfo("video", FEATURES, _duration(known.tracks))
        content = known.content or _content(self.tree.dataset, item, made)
        facts = info or self.store.info(content)
        # Cut anew, for new ids: embeddings kept under the old ones are of other features.
        cuts = tuple(cut_clips(facts, None)) if made and facts else ()
        return ProcessedFile(AddTask(known.path, NO_FILE, True, 0, content), content, info, made, cuts, 0.0)


def _storable(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:  # half of a character
        return False
    return True


def _content(dataset: str, item: str, made: Sequence[ExpertResult]) -> str:
    """What stands for the hash of a file: dataset, id and what the item first came with."""
    parts = sorted((one.expert, one.staged.hash if one.staged else "") for one in made)
    return hashlib.sha256(json.dumps([FEATURES, dataset, item, parts]).encode()).hexdigest()


def _duration(tracks: Sequence[Track]) -> float:
    """The end of the last row whose time is known; 0 where none is."""
    return max([0.0, *(float(np.max(track.times)) for track in tracks)])
