"""Process one file in a worker thread, then record it from the writer thread.

`FileProcessor` decides what a file needs and lets an `Extractor` do it; it only reads the catalogue. Each
`record_*` and `remove_*` function is one transaction.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Literal

from wordreel.errors import LibraryError, MediaError, NextStep, NotMedia, WeightsError
from wordreel.library.catalogue import Catalogue
from wordreel.library.clips import SHOTS_EXPERT, ClipBounds, Span, cut_clips, shots_of
from wordreel.library.expert_runner import ExpertFailed
from wordreel.library.extractor import ExpertResult, Extractor, FileTracks
from wordreel.library.passes import Pass, is_quick, mark_quick, mark_thorough, stretches_between
from wordreel.library.paths import from_blob, may_exist, prefix_bounds, to_blob
from wordreel.library.scan import FileStamp
from wordreel.library.store import LibraryStore
from wordreel.media.types import MediaInfo
from wordreel.types import Absent, Track

EmbedContent = Callable[[str], None]
"""Embeds the clips of a content as the catalogue has them inside the transaction that calls it."""

FileChange = Literal["added", "changed", "updated", "unchanged", "moved", "duplicate"]


class AddStopped(Exception):
    """The user interrupted, or another file met an error that ends the whole run."""


class ContentLocks:
    """Contents being processed, so that two copies of a file met at once are processed once."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def acquire(self, content: str) -> bool:
        """Lock a content; False if another worker holds it."""
        with self._lock:
            if content in self._held:
                return False
            self._held.add(content)
            return True

    def release(self, content: str) -> None:
        with self._lock:
            self._held.discard(content)

    def __contains__(self, content: str) -> bool:
        with self._lock:
            return content in self._held


@dataclass(frozen=True)
class AddTask:
    """A file to process. `content` is set if the file is unchanged and only experts are missing.

    `last_content` is what it was when it last had the same stamp; it nearly always still is.
    """

    path: str
    stamp: FileStamp
    expected: bool  # report it if it is not media
    checked_ns: int
    content: str | None = None
    last_content: str | None = None


@dataclass(frozen=True)
class ProcessedFile:
    """Everything to record about a file.

    `info` is set if the content is new to the library, or new to the thorough pass; then `analysis` is the
    pass that the content has had once this is recorded.
    """

    task: AddTask
    content: str
    info: MediaInfo | None
    results: tuple[ExpertResult, ...]
    clips: tuple[ClipBounds, ...]
    seconds: float
    analysis: Pass = "thorough"


@dataclass(frozen=True)
class Deferred:
    """Another worker is processing the same content; try again when it is done."""

    task: AddTask
    content: str


@dataclass(frozen=True)
class FailedFile:
    """A file that could not be processed, and why. `content` is the lock to release, if one was acquired."""

    task: AddTask
    reason: str
    content: str = ""


@dataclass(frozen=True)
class NotMediaFile:
    """Not media after all, and not expected to be."""

    task: AddTask


ProcessOutcome = ProcessedFile | Deferred | FailedFile | NotMediaFile


def expert_set_id(fingerprints: Mapping[str, str]) -> str:
    """Identify a set of experts: a failed file is tried again when the experts change."""
    return hashlib.sha256(repr(sorted(fingerprints.items())).encode()).hexdigest()[:16]


def missing_experts(catalogue: Catalogue, content: str, fingerprints: Mapping[str, str]) -> list[str]:
    """Experts whose track of a content is absent from the library or from another version of the expert."""
    have: dict[str, str] = dict(
        catalogue.rows("SELECT expert, fingerprint FROM tracks WHERE content = ?", content)
    )
    return [name for name, fingerprint in fingerprints.items() if have.get(name) != fingerprint]


@dataclass(frozen=True)
class FileProcessor:
    """Decides what files need and has it done; one per worker thread, over shared state."""

    store: LibraryStore
    extractor: Extractor
    locks: ContentLocks
    stop: threading.Event
    on_position: Callable[[AddTask, float, float], None]  # seconds read, duration in the file's header
    keep_clips: bool
    quick: bool = False  # a content that the library knows is not looked at again

    def process(self, task: AddTask) -> ProcessOutcome:
        """Process one file, or say why not. Errors that concern all files are raised."""
        locked = ""
        try:
            content = task.content
            info: MediaInfo | None = None
            if content is None and self.store.has_content_of_size(task.stamp.size):
                content = self._hash(task)  # it may have moved here: then it needs no decoding
            if content is None or self.store.info(content) is None:
                info = self.extractor.probe(Path(task.path))
                content = content or self._hash(task)
            if not self.locks.acquire(content):
                return Deferred(task, content)
            locked = content
            return self._run_experts(task, content, info)
        except NotMedia as error:
            return FailedFile(task, error.message, locked) if task.expected else NotMediaFile(task)
        except MediaError as error:
            return FailedFile(task, error.message, locked)
        except ExpertFailed as error:
            return FailedFile(task, str(error), locked)
        except (AddStopped, LibraryError, WeightsError):
            raise
        except MemoryError as error:
            raise LibraryError(
                f"out of memory at {task.path!r}; everything added so far is saved",
                NextStep(
                    "close other programs, or use fewer experts or jobs, and run the same command again"
                ),
            ) from error
        except OSError as error:
            return FailedFile(task, f"cannot be read: {error.strerror or error}", locked)
        except Exception as error:
            return FailedFile(task, f"{type(error).__name__}: {error}", locked)

    def _run_experts(self, task: AddTask, content: str, info: MediaInfo | None) -> ProcessOutcome:
        known = self.store.info(content)  # a copy may have been recorded since this file was opened
        first_thorough = not self.quick and not self.keep_clips and is_quick(self.store.catalogue, content)
        media: MediaInfo = known or info or self.extractor.probe(Path(task.path))
        names = self._names(content, media, known is not None, first_thorough)
        duration = media.duration

        def on_position(seconds: float) -> None:
            self._check_stop()
            self.on_position(task, seconds, duration)

        tracks = self.extractor.extract(Path(task.path), task.stamp, names, on_position)
        new = known is None or first_thorough
        if new and not self.quick and media.kind != "image" and tracks.end > 0:
            media = replace(media, duration=tracks.end)  # the header's duration may be wrong
        clips: Sequence[ClipBounds] = ()
        if new or (names and not self.keep_clips):
            clips = cut_clips(media, self._spans(content, names, tracks, media.duration))
        self._check_stop()
        seconds = media.duration if names else 0.0
        analysis: Pass = "quick" if self.quick else "thorough"
        return ProcessedFile(
            task, content, media if new else None, tracks.results, tuple(clips), seconds, analysis
        )

    def _names(self, content: str, media: MediaInfo, known: bool, first_thorough: bool) -> list[str]:
        """The experts to run."""
        if not known or (first_thorough and media.kind == "video"):
            # All of them: where a video ends depends on what of it is decoded.
            return list(self.extractor.fingerprints)
        if self.quick:
            return []
        return missing_experts(self.store.catalogue, content, self.extractor.fingerprints)

    def _spans(
        self, content: str, names: Sequence[str], tracks: FileTracks, end: float
    ) -> Sequence[Span] | None:
        if self.quick:
            return stretches_between(tracks.key_frames, end) if tracks.key_frames else None
        return shots_of(self._shots_track(content, names, tracks), end)

    def _shots_track(self, content: str, names: Sequence[str], tracks: FileTracks) -> Track | Absent | None:
        return tracks.shots if SHOTS_EXPERT in names else self.store.track(content, SHOTS_EXPERT)

    def _hash(self, task: AddTask) -> str:
        return self.extractor.hash(Path(task.path), self._check_stop)

    def _check_stop(self) -> None:
        if self.stop.is_set():
            raise AddStopped


def record_file(
    store: LibraryStore, processed: ProcessedFile, embed: EmbedContent | None = None
) -> tuple[FileChange, str]:
    """Record content, tracks, clips, words and path; return what changed and, for "moved", the old path.

    The track files are committed already. With `embed`, new clips of a content that searches find already are
    embedded before the transaction ends: they find the old ones until then, and the new ones from then on.
    """
    catalogue, task = store.catalogue, processed.task
    swapped = bool(embed is not None and processed.clips and store.clips(processed.content))
    # A kill rolls the transaction back, but not the embeddings: their ids must not be given out again.
    ids = reserve_clip_ids(catalogue, len(processed.clips)) if swapped else None
    with catalogue.transaction():
        if processed.info:
            catalogue.run(
                f"INSERT INTO contents VALUES ({','.join('?' * 13)}) "  # noqa: S608
                "ON CONFLICT (content) DO UPDATE SET duration = excluded.duration",
                processed.content, task.stamp.size, *astuple(processed.info), time.time(),
            )  # fmt: skip
        for result in processed.results:
            _insert_track(catalogue, processed.content, result)
        if processed.clips:
            insert_clips(catalogue, processed.content, processed.clips, ids)
        if processed.info:
            mark = mark_quick if processed.analysis == "quick" else mark_thorough
            mark(catalogue, processed.content)
        recorded = _insert_path(catalogue, processed)
        if ids is not None and embed is not None:
            embed(processed.content)
        return recorded


def insert_clips(
    catalogue: Catalogue, content: str, clips: Sequence[ClipBounds], ids: Sequence[int] | None = None
) -> None:
    """Replace the clips of a content; the new ones get new ids, those reserved for them if given."""
    catalogue.run("DELETE FROM clips WHERE content = ?", content)
    numbers: Sequence[int | None] = ids or [None] * len(clips)  # None: the next one
    catalogue.run_many(
        "INSERT INTO clips (id, content, start, end, whole, shot) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (number, content, c.start, c.end, int(c.whole), c.shot)
            for number, c in zip(numbers, clips, strict=True)
        ],
    )


def reserve_clip_ids(catalogue: Catalogue, count: int) -> range:
    """Ids that no other clip will ever get. Some clip must be in the catalogue already."""
    with catalogue.transaction():
        catalogue.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'clips'", count)
        row = catalogue.one("SELECT seq FROM sqlite_sequence WHERE name = 'clips'")
    last = int(row[0]) if row else 0
    return range(last - count + 1, last + 1)


def _insert_track(catalogue: Catalogue, content: str, result: ExpertResult) -> None:
    # Deleting a track deletes its words too.
    catalogue.run("DELETE FROM tracks WHERE content = ? AND expert = ?", content, result.expert)
    insert = "INSERT INTO tracks VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    key = (content, result.expert, result.fingerprint)
    if result.staged is None:
        catalogue.run(insert, *key, "absent", None, result.reason, 0, 0)
        return
    catalogue.run(insert, *key, "present", result.staged.hash, "", result.rows, result.dim)
    catalogue.run_many(
        "INSERT INTO words (content, expert, start, end, text, score) VALUES (?, ?, ?, ?, ?, ?)",
        [(content, result.expert, w.start, w.end, w.text, w.score) for w in result.words],
    )


def _insert_path(catalogue: Catalogue, processed: ProcessedFile) -> tuple[FileChange, str]:
    """Point the path at the content."""
    task, content, key = processed.task, processed.content, to_blob(processed.task.path)
    before = catalogue.one("SELECT content FROM files WHERE path = ?", key)
    rows = catalogue.rows("SELECT path FROM files WHERE content = ? ORDER BY path", content)
    holders = [from_blob(path) for (path,) in rows]
    lost = next((path for path in holders if path != task.path and not may_exist(path)), "")
    change: FileChange
    if before:
        change = "changed" if before[0] != content else "updated" if processed.results else "unchanged"
    elif lost:
        catalogue.run("DELETE FROM files WHERE path = ?", to_blob(lost))
        change = "moved"
    else:
        change = "duplicate" if holders else "added"
    catalogue.run(
        """INSERT INTO files (path, content, size, mtime_ns, ctime_ns, inode, checked_ns, added_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (path) DO UPDATE SET content = excluded.content, size = excluded.size,
               mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, inode = excluded.inode,
               checked_ns = excluded.checked_ns""",
        key, content, *astuple(task.stamp), task.checked_ns, time.time(),
    )  # fmt: skip
    catalogue.run("DELETE FROM failures WHERE path = ?", key)
    return change, lost if change == "moved" else ""


def record_failure(store: LibraryStore, failed: FailedFile, expert_set: str) -> None:
    """Record that a file failed. If the path had other content before, that content is no longer there."""
    key, stamp = to_blob(failed.task.path), failed.task.stamp
    with store.catalogue.transaction():
        store.catalogue.run("DELETE FROM files WHERE path = ? AND content != ?", key, failed.content)
        store.catalogue.run(
            """INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (path) DO UPDATE SET size = excluded.size,
               mtime_ns = excluded.mtime_ns, recipe = excluded.recipe, reason = excluded.reason,
               failed_at = excluded.failed_at""",
            key, stamp.size, stamp.mtime_ns, expert_set, failed.reason, time.time(),
        )  # fmt: skip


def remove_not_media(store: LibraryStore, task: AddTask) -> None:
    """Remove a path that was media once and no longer is."""
    with store.catalogue.transaction():
        store.catalogue.run("DELETE FROM files WHERE path = ?", to_blob(task.path))
        store.catalogue.run("DELETE FROM failures WHERE path = ?", to_blob(task.path))


def remove_lost_failures(store: LibraryStore, roots: Iterable[str]) -> None:
    """Remove failures at or below `roots`, canonical paths, whose files are no longer there."""
    with store.catalogue.transaction():
        for root in roots:
            low, high = prefix_bounds(root)
            rows = store.catalogue.rows(
                "SELECT path FROM failures WHERE path = ? OR (path >= ? AND path < ?)",
                to_blob(root),
                low,
                high,
            )
            for (path,) in rows:
                if not may_exist(from_blob(path)):
                    store.catalogue.run("DELETE FROM failures WHERE path = ?", path)
