"""Look into one file: hash it, decode it, ask the experts. Runs in worker threads; writes no catalogue."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wordreel.errors import LibraryError, MediaError, NotMedia, WeightsError
from wordreel.library.clips import Cut, Span, cut
from wordreel.library.extract import Decoder, ExpertFailed, Panel, extract
from wordreel.library.plan import Job, missing
from wordreel.library.scan import Stamp
from wordreel.library.store import LibraryStore
from wordreel.library.tracks import Staged
from wordreel.media.types import MediaInfo, Window
from wordreel.types import Absent, Track

SHOTS = "shots"  # the expert whose track says where the shots begin
CHUNK = 1 << 22


class Stopped(Exception):
    """The user interrupted, or another file met an error that ends everything."""


class Claims:
    """Contents being worked on, so that two copies of a file met at once are worked out once."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def take(self, content: str) -> bool:
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
class Made:
    """One expert's answer; a present track is staged on disk."""

    expert: str
    fingerprint: str
    answer: Track | Absent
    staged: Staged | None


@dataclass(frozen=True)
class Ready:
    """Everything the catalogue will be told of a file. `info` is None when the content is known already."""

    job: Job
    content: str
    info: MediaInfo | None
    made: tuple[Made, ...]
    cuts: tuple[Cut, ...]
    seconds: float


@dataclass(frozen=True)
class Waits:
    """Another worker has this content in hand; ask again when it is done."""

    job: Job
    content: str


@dataclass(frozen=True)
class Failed:
    job: Job
    reason: str
    content: str = ""  # the claim to give back, if one was taken


@dataclass(frozen=True)
class Foreign:
    """Not media after all, and nobody expected it to be."""

    job: Job


Outcome = Ready | Waits | Failed | Foreign


@dataclass(frozen=True)
class Desk:
    """What every worker shares."""

    store: LibraryStore
    decoder: Decoder
    panel: Panel
    fingerprints: dict[str, str]
    claims: Claims
    stop: threading.Event
    on_window: Callable[[Job, Window, float], None]  # the last is how long the file says it is


def study(desk: Desk, job: Job) -> Outcome:
    """Everything about one file, or the one reason why not. Errors that concern all files are raised."""
    claimed = ""
    try:
        content = job.content
        info: MediaInfo | None = None
        if content is None and desk.store.size_known(job.stamp.size):
            content = _hash(job.path, desk.stop)  # it may have moved here: then it needs no decoding
        if content is None or desk.store.info(content) is None:
            info = desk.decoder.probe(Path(job.path))
            content = content or _hash(job.path, desk.stop)
        if not desk.claims.take(content):
            return Waits(job, content)
        claimed = content
        return _work_out(desk, job, content, info)
    except NotMedia as error:
        return Failed(job, error.message, claimed) if job.expected else Foreign(job)
    except MediaError as error:
        return Failed(job, error.message, claimed)
    except ExpertFailed as error:
        return Failed(job, str(error), claimed)
    except (Stopped, LibraryError, WeightsError):
        raise
    except MemoryError as error:
        raise LibraryError(
            f"out of memory at {job.path!r}; what was added so far is kept. Close other programs, or use "
            "fewer experts or jobs, and run the same command again"
        ) from error
    except OSError as error:
        return Failed(job, f"cannot be read: {error.strerror or error}", claimed)
    except Exception as error:
        return Failed(job, f"{type(error).__name__}: {error}", claimed)


def _work_out(desk: Desk, job: Job, content: str, info: MediaInfo | None) -> Outcome:
    known = desk.store.info(content)  # a copy may have been finished since this file was opened
    names = missing(desk.store.catalogue, content, desk.fingerprints) if known else list(desk.fingerprints)
    media: MediaInfo = known or info or desk.decoder.probe(Path(job.path))
    length = media.duration

    def on_window(window: Window) -> None:
        if desk.stop.is_set():
            raise Stopped
        desk.on_window(job, window, length)

    got = extract(desk.decoder, Path(job.path), desk.panel, names, on_window)
    if Stamp.of(Path(job.path).stat()) != job.stamp:
        return Failed(job, "changed while it was being read; add again", content)
    if known is None and media.kind != "image" and got.end > 0:
        media = replace(media, duration=got.end)  # what the file says of its length may be wrong
    cuts = _cuts(desk, content, media, got.results) if known is None or names else ()
    if desk.stop.is_set():
        raise Stopped
    made = tuple(
        Made(n, desk.fingerprints[n], r, desk.store.track_files.stage(r) if isinstance(r, Track) else None)
        for n, r in got.results.items()
    )
    return Ready(
        job, content, media if known is None else None, made, tuple(cuts), media.duration if names else 0.0
    )


def _cuts(desk: Desk, content: str, info: MediaInfo, results: dict[str, Track | Absent]) -> Sequence[Cut]:
    track = results[SHOTS] if SHOTS in results else desk.store.track(content, SHOTS)
    return cut(info, shots_of(track, info.duration))


def shots_of(track: Track | Absent | None, end: float) -> list[Span] | None:
    """Where the shots of a video lie, from the track of the shots expert."""
    if not isinstance(track, Track):
        return None
    from wordreel.media import find_shots

    return list(find_shots(track.values, track.times[:, 0], end))


def _hash(path: str, stop: threading.Event) -> str:
    digest = hashlib.sha256()
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "rb", buffering=0) as source:
        while block := source.read(CHUNK):
            if stop.is_set():
                raise Stopped
            digest.update(block)
    return digest.hexdigest()
