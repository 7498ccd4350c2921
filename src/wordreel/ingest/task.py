"""The files of an `add` on their way: from the plan to a worker thread, and from there to the writer."""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.catalogue.clips import ClipBounds
from wordreel.catalogue.passes import Pass
from wordreel.ingest.extractor import ExpertResult
from wordreel.ingest.scan import FileStamp
from wordreel.media.types import MediaInfo


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
