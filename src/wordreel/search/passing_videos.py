"""The videos of a snapshot that pass some filters."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from wordreel.catalogue.file_conditions import FileConditions
from wordreel.embed.columns import damaged_columns
from wordreel.search.file_records import FileRecord, FileRecords
from wordreel.search.filters import Filters
from wordreel.search.overlaps import overlapping_rows, video_numbers
from wordreel.types import Bool

if TYPE_CHECKING:
    from wordreel.search.snapshot import LibrarySnapshot


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
