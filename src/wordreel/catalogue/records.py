"""The records a `LibraryStore` returns, one frozen dataclass per kind of row."""

from __future__ import annotations

import os
from dataclasses import dataclass

from wordreel.catalogue.passes import Pass
from wordreel.media.types import MediaInfo
from wordreel.types import Clip


@dataclass(frozen=True)
class FileStamp:
    """Identifies an unchanged file without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        # Some file systems number files with 64 bits; SQLite's integers have 63 and a sign.
        """Return the stamp of a file's status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & (2**63 - 1))


@dataclass(frozen=True)
class StoredFile:
    """A path in the library and its content when it was last added."""

    path: str
    content: str
    size: int
    mtime_ns: int
    added_at: float
    captured: str = ""  # when it was recorded, as ISO 8601 text in local time; empty for an imported item
    captured_from: str = ""  # where that was read: "metadata", "file name" or "file time"


@dataclass(frozen=True)
class Video:
    """One content (a video, a sound or a picture) and every path that holds it, sorted."""

    content: str
    info: MediaInfo
    paths: tuple[str, ...]
    size: int
    analysis: Pass = "thorough"
    captured: str = ""  # of the first path, as in `StoredFile`
    captured_from: str = ""


@dataclass(frozen=True)
class TrackRow:
    """The output of one expert on one content, without the values."""

    content: str
    expert: str
    fingerprint: str
    present: bool
    hash: str | None
    reason: str
    rows: int
    dim: int


@dataclass(frozen=True)
class StoredClip:
    """A gallery item with its id. Ids are never reused; a clip whose tracks changed has a new one."""

    id: int
    content: str
    start: float
    end: float
    whole: bool
    shot: int  # which shot of the video it lies in; -1 for whole videos and fixed pieces

    @property
    def clip(self) -> Clip:
        """Return the clip as models see it."""
        return Clip(self.content, self.start, self.end, self.whole)


@dataclass(frozen=True)
class WordRow:
    """Spoken or on-screen words of one content."""

    content: str
    expert: str
    start: float
    end: float
    text: str
    score: float


@dataclass(frozen=True)
class MatchedLines:
    """Lines of words, tags and notes by column: ids, negative for tags and notes, and where the lines are."""

    ids: tuple[int, ...] = ()
    contents: tuple[str, ...] = ()
    starts: tuple[float, ...] = ()
    ends: tuple[float, ...] = ()


@dataclass(frozen=True)
class CaptionRow:
    """A sentence about an item of a dataset: a query whose right answer is `content`."""

    content: str
    text: str
    start: float | None  # seconds; None where it is about the whole
    end: float | None
    split: str
    dataset: str


@dataclass(frozen=True)
class Failure:
    """A file that could not be added, and why."""

    path: str
    reason: str
    size: int
    mtime_ns: int
    failed_at: float


@dataclass(frozen=True)
class Stats:
    """Counts and sizes of a library."""

    files: int
    contents: int
    videos: int
    sounds: int
    images: int
    seconds: float
    media_bytes: int
    clips: int
    words: int
    failures: int
    quick: int  # contents that have had the quick pass only
    experts: dict[str, tuple[int, int]]  # name -> (present, absent)
    track_bytes: int
    catalogue_bytes: int
    cache_bytes: int
