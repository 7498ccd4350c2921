"""Process one file in a worker thread: decide what it needs, and let an `Extractor` do it.

The catalogue is only read here; `record_file.py` writes what comes out.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from wordreel.catalogue.clips import SHOTS_EXPERT, ClipBounds, Span, cut_clips, shots_of
from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.passes import is_quick, stretches_between
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, MediaError, NextStep, NotMedia, WeightsError
from wordreel.experts import registry
from wordreel.ingest.extract import Extractor, FileTracks
from wordreel.ingest.tasks import (
    AddOptions,
    AddTask,
    Deferred,
    FailedFile,
    NotMediaFile,
    ProcessedFile,
    ProcessOutcome,
)
from wordreel.media.types import MediaInfo
from wordreel.util.machine import cores

PIXELS_PER_CORE = 10_000_000
"""Pixels of a frame, summed over the files decoded at once: two cores decode two files of 4K, or one of 8K,
for which a decoder holds 500 MB."""
_PATIENCE = 0.5  # seconds between two looks at whether to stop


Release = Callable[[], None]
"""Ends a hold before its block does."""


class DecodeBudget:
    """Lets files in, in order, while their frames together have at most `pixels`; a larger one goes in alone.

    Args:
        pixels: The bound on the sum; ten million for each core if None.
        files: How many at once, whatever their size; as many as there are if None.

    >>> budget = DecodeBudget()
    >>> with budget.hold(7680 * 4320, lambda: None) as release:
    ...     before = budget.held
    ...     release()
    ...     before, budget.held
    (33177600, 0)
    """

    def __init__(self, pixels: int | None = None, files: int | None = None) -> None:
        self.held = 0
        self._files_held = 0
        self._pixels = PIXELS_PER_CORE * cores() if pixels is None else pixels
        self._files = math.inf if files is None else files
        self._turn = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, pixels: int, check_stop: Callable[[], None]) -> Iterator[Release]:
        """Wait until there is room for a file, and hold it; `check_stop` may raise while waiting."""
        while not self._turn.acquire(timeout=_PATIENCE):  # whoever waits for room has it: first come
            check_stop()
        try:
            with self._changed:
                while (self.held and self.held + pixels > self._pixels) or self._files_held >= self._files:
                    self._changed.wait(_PATIENCE)
                    check_stop()
                self.held += pixels
                self._files_held += 1
        finally:
            self._turn.release()
        released = False

        def release() -> None:
            nonlocal released
            with self._changed:
                if not released:
                    released = True
                    self.held -= pixels
                    self._files_held -= 1
                    self._changed.notify_all()

        try:
            yield release
        finally:
            release()


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
        """Let others process a content."""
        with self._lock:
            self._held.discard(content)

    def __contains__(self, content: str) -> bool:
        with self._lock:
            return content in self._held


def expert_set_id(fingerprints: Mapping[str, str]) -> str:
    """Identify a set of experts: a failed file is tried again when the experts change."""
    return hashlib.sha256(repr(sorted(fingerprints.items())).encode()).hexdigest()[:16]


def missing_experts(catalogue: Catalogue, content: str, fingerprints: Mapping[str, str]) -> list[str]:
    """Return experts whose track of a content is absent or from another version of the expert."""
    have: dict[str, str] = dict(
        catalogue.rows("SELECT expert, fingerprint FROM tracks WHERE content = ?", content)
    )
    return [
        name
        for name, fingerprint in fingerprints.items()
        if name not in have or not registry.is_current(name, have[name], fingerprint)
    ]


@dataclass(frozen=True)
class FileProcessor:
    """Decides what files need and has it done; one per worker thread, over shared state."""

    store: LibraryStore
    extractor: Extractor
    locks: ContentLocks
    budget: DecodeBudget
    stop: threading.Event
    on_position: Callable[[AddTask, float, float], None]  # seconds read, duration in the file's header
    options: AddOptions

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
        thorough = not self.options.quick and not self.options.keep_clips
        undated = thorough and known is not None and known.recorded is None
        if undated and known is not None:  # added by an earlier version, which did not read the date
            known = replace(known, recorded=self.extractor.probe(Path(task.path)).recorded)
        first_thorough = thorough and is_quick(self.store.catalogue, content)
        media: MediaInfo = known or info or self.extractor.probe(Path(task.path))
        names = self._names(content, media, known is not None, first_thorough)
        duration = media.duration

        def on_position(seconds: float) -> None:
            self._check_stop()
            self.on_position(task, seconds, duration)

        with self.budget.hold(media.width * media.height if names else 0, self._check_stop) as release:
            tracks = self.extractor.extract(Path(task.path), task.stamp, names, on_position, release)
        new = known is None or first_thorough
        if new and not self.options.quick and media.kind != "image" and tracks.end > 0:
            media = replace(media, duration=tracks.end)  # the header's duration may be wrong
        clips: Sequence[ClipBounds] = ()
        if new or (names and not self.options.keep_clips):
            clips = cut_clips(media, self._spans(content, names, tracks, media.duration))
        self._check_stop()
        seconds = media.duration if names else 0.0
        recorded = media if new or undated else None
        return ProcessedFile(
            task, content, recorded, tracks.results, tuple(clips), seconds, self.options.analysis
        )

    def _names(self, content: str, media: MediaInfo, known: bool, first_thorough: bool) -> list[str]:
        """Return the experts to run."""
        if not known or (first_thorough and media.kind == "video"):
            # All of them: where a video ends depends on what of it is decoded.
            return list(self.extractor.fingerprints)
        if self.options.quick:
            return []
        return missing_experts(self.store.catalogue, content, self.extractor.fingerprints)

    def _spans(
        self, content: str, names: Sequence[str], tracks: FileTracks, end: float
    ) -> Sequence[Span] | None:
        if self.options.quick:
            return stretches_between(tracks.key_frames, end) if tracks.key_frames else None
        shots = tracks.shots if SHOTS_EXPERT in names else self.store.track(content, SHOTS_EXPERT)
        return shots_of(shots, end)

    def _hash(self, task: AddTask) -> str:
        return self.extractor.hash(Path(task.path), self._check_stop)

    def _check_stop(self) -> None:
        if self.stop.is_set():
            raise AddStopped
