"""`Filters`: which videos a search may return. A new filter is a field here and in `FileConditions`."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wordreel.catalogue.annotations import compared
from wordreel.catalogue.file_conditions import FileConditions
from wordreel.catalogue.paths import is_imported
from wordreel.embed.columns import damaged_columns
from wordreel.errors import QueryError
from wordreel.search.file_records import FileRecord, FileRecords
from wordreel.search.overlaps import overlapping_rows, video_numbers
from wordreel.types import Bool

if TYPE_CHECKING:
    from wordreel.search.snapshot import LibrarySnapshot


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
        tags: Only moments with each of these tags.
        people: Only moments in which each of these people, by name, is seen.

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
    tags: Sequence[str] = ()
    people: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("tags", "people"):
            given = getattr(self, name) or ()
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        if self.after and self.before and self.after >= self.before:
            raise QueryError(
                f"nothing is after {self.after:%Y-%m-%d} and before {self.before:%Y-%m-%d}; swap the two",
            )
        low, high = self.min_duration, self.max_duration
        if low is not None and high is not None and low > high:
            raise QueryError(
                f"nothing lasts at least {low:g} and at most {high:g} seconds; swap the two",
            )

    @property
    def conditions(self) -> FileConditions:
        """The same for the catalogue, with the folder as it is spelled there."""
        return FileConditions(
            None if self.folder is None else _real_path(Path(self.folder)),
            self.after.timestamp() if self.after else None,
            self.before.timestamp() if self.before else None,
            self.min_duration,
            self.max_duration,
            self.has_speech,
            self.has_text,
            self.expert,
            self.kind,
            tuple(compared(tag) for tag in self.tags),
            tuple(compared(name) for name in self.people),
        )

    @property
    def lasting(self) -> bool:
        """Whether the answer stays the same while the videos do; people tag and name at any time."""
        return not self.tags and not self.people


@dataclass(frozen=True, eq=False)
class PassingVideos:
    """The videos of a snapshot that pass some filters, evaluated by the catalogue."""

    snapshot: LibrarySnapshot
    conditions: FileConditions
    passed: Bool | None  # by number of the video; None if all pass
    _records: FileRecords

    @classmethod
    def of(cls, snapshot: LibrarySnapshot, filters: Filters) -> PassingVideos:
        conditions = filters.conditions
        # The snapshot caches the result: a strong reference back would hold its mapped files, deleted ones
        # too, until the garbage collector runs.
        weak: LibrarySnapshot = weakref.proxy(snapshot)
        if conditions.empty:
            return cls(weak, conditions, None, FileRecords(snapshot.store, conditions))
        numbers = snapshot.columns.numbers(snapshot.store.passing_contents(conditions))
        passed = np.zeros(len(snapshot.columns.contents), bool)
        passed[numbers[numbers >= 0]] = True
        return cls(weak, conditions, passed, FileRecords(snapshot.store, conditions))

    @cached_property
    def count(self) -> int:
        """How many videos pass."""
        if self.passed is None:
            return self.snapshot.video_count()
        return int(self.passed[self.snapshot.video_numbers].sum())

    @cached_property
    def allowed(self) -> Bool | None:
        """`[rows]`: which items are of these videos; None if all rows are."""
        if self.passed is None:
            return self.snapshot.live if len(self.snapshot.columns.dead) else None
        try:
            allowed = np.asarray(self.passed[self.snapshot.columns.video] & self.snapshot.live)
        except IndexError as error:
            raise damaged_columns(error) from None
        for moments in self.snapshot.store.required_moments(self.conditions):
            inside = np.zeros(len(allowed), bool)
            videos = video_numbers(self.snapshot, [moment.content for moment in moments])
            starts, ends = [moment.start for moment in moments], [moment.end for moment in moments]
            inside[overlapping_rows(self.snapshot, videos, starts, ends, wholes=False)] = True
            allowed &= inside
        return allowed

    def records(self, contents: Sequence[str]) -> dict[str, FileRecord]:
        """The first file of each of these videos that passes; none for videos that were removed since."""
        return self._records.of(contents)


def _real_path(folder: Path) -> str:
    """The one spelling of a folder; of imported items, the dataset they came from."""
    if is_imported(str(folder)):
        return str(folder)
    try:
        return os.path.realpath(folder.expanduser())
    except (ValueError, RuntimeError) as error:  # a zero byte, or somebody's home folder that there is not
        raise QueryError(f"{str(folder)!r:.200} is not a folder: {error}", field="folder") from None
