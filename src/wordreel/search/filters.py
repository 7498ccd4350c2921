"""Which videos a search may return."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from wordreel.errors import QueryError
from wordreel.library.paths import is_imported
from wordreel.library.records import StoredFile
from wordreel.search.facts import Facts

FactsOf = Callable[[], Mapping[str, Facts]]


@dataclass(frozen=True)
class Filters:
    """What a file must be: under a folder, changed within bounds, of a kind, so long, with speech, text or an
    expert.

    `has_speech` and `has_text` are about words that were really heard or read; `expert` must have a track;
    `kind` is "video", "audio" or "image". Bounds on the duration let it be equal to them.
    """

    folder: Path | None = None
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
                f"nothing is after {self.after:%Y-%m-%d} and before {self.before:%Y-%m-%d}; swap the two"
            )
        low, high = self.min_duration, self.max_duration
        if low is not None and high is not None and low > high:
            raise QueryError(f"nothing lasts at least {low:g} and at most {high:g} seconds; swap the two")

    def paths(self, files: list[StoredFile], facts: FactsOf) -> dict[str, str]:
        """Content to the first path of it that passes, in the order of paths.

        `facts` is asked only where something other than files is filtered by.
        """
        known = facts() if self._about_videos() else {}
        root = None if self.folder is None else _settled(self.folder)
        kept: dict[str, str] = {}
        for file in files:
            if root is not None and not _under(file.path, root):
                continue
            changed = file.mtime_ns / 1e9
            if self.after and changed < self.after.timestamp():
                continue
            if self.before and changed >= self.before.timestamp():
                continue
            if file.content in kept or (known and not self._passes(known.get(file.content))):
                continue
            kept[file.content] = file.path
        return kept

    def _about_videos(self) -> bool:
        asked = (self.min_duration, self.max_duration, self.has_speech, self.has_text, self.expert, self.kind)
        return any(value is not None for value in asked)

    def _passes(self, video: Facts | None) -> bool:
        return video is not None and (
            (self.min_duration is None or video.duration >= self.min_duration)
            and (self.max_duration is None or video.duration <= self.max_duration)
            and (self.has_speech is None or video.has_speech == self.has_speech)
            and (self.has_text is None or video.has_text == self.has_text)
            and (self.expert is None or self.expert in video.experts)
            and (self.kind is None or video.kind == self.kind)
        )


def _settled(folder: Path) -> str:
    """The one spelling of a folder; of imported items, the dataset they came from."""
    return str(folder) if is_imported(str(folder)) else os.path.realpath(folder.expanduser())


def _under(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
