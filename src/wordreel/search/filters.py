"""`Filters`: which videos a search may return. A new filter is a field here and its test in `paths`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path

from wordreel.errors import QueryError
from wordreel.library.paths import is_imported
from wordreel.library.records import StoredFile, VideoFacts

FactsOf = Callable[[], Mapping[str, VideoFacts]]


@dataclass(frozen=True)
class Filters:
    """Conditions that every returned file meets; None leaves one out.

    Args:
        folder: Under this folder (or this file itself).
        after: Last modified at or after.
        before: Last modified before.
        min_duration: At least so many seconds long.
        max_duration: At most so many seconds long.
        has_speech: Whether speech was recognised in it.
        has_text: Whether on-screen text was recognised in it.
        expert: This expert has features for the video.
        kind: "video", "audio" or "image".

    Raises:
        QueryError: No file can meet the conditions.

    >>> Filters(folder="~/Videos/2024", kind="video").kind
    'video'
    """

    folder: str | PathLike[str] | None = None
    after: datetime | None = None
    before: datetime | None = None
    min_duration: float | None = None
    max_duration: float | None = None
    has_speech: bool | None = None
    has_text: bool | None = None
    expert: str | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.after and self.before and self.after >= self.before:
            raise QueryError(
                f"nothing is after {self.after:%Y-%m-%d} and before {self.before:%Y-%m-%d}; swap the two",
            )
        low, high = self.min_duration, self.max_duration
        if low is not None and high is not None and low > high:
            raise QueryError(
                f"nothing lasts at least {low:g} and at most {high:g} seconds; swap the two",
            )

    def paths(self, files: Sequence[StoredFile], facts: FactsOf) -> dict[str, str]:
        """Content hash to its first path that passes, in the order of paths.

        `facts` is called only if a filter needs more than the file itself.
        """
        known = facts() if self._needs_facts() else {}
        root = None if self.folder is None else _real_path(Path(self.folder))
        passed: dict[str, str] = {}
        for file in files:
            if root is not None and not _under(file.path, root):
                continue
            modified = file.mtime_ns / 1e9
            if self.after and modified < self.after.timestamp():
                continue
            if self.before and modified >= self.before.timestamp():
                continue
            if file.content in passed or (known and not self._passes(known.get(file.content))):
                continue
            passed[file.content] = file.path
        return passed

    def _needs_facts(self) -> bool:
        values = (
            self.min_duration,
            self.max_duration,
            self.has_speech,
            self.has_text,
            self.expert,
            self.kind,
        )
        return any(value is not None for value in values)

    def _passes(self, video: VideoFacts | None) -> bool:
        return video is not None and (
            (self.min_duration is None or video.duration >= self.min_duration)
            and (self.max_duration is None or video.duration <= self.max_duration)
            and (self.has_speech is None or video.has_speech == self.has_speech)
            and (self.has_text is None or video.has_text == self.has_text)
            and (self.expert is None or self.expert in video.experts)
            and (self.kind is None or video.kind == self.kind)
        )


def _real_path(folder: Path) -> str:
    """The one spelling of a folder; of imported items, the dataset they came from."""
    return str(folder) if is_imported(str(folder)) else os.path.realpath(folder.expanduser())


def _under(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
