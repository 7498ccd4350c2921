"""The items that a search may return: of videos that pass its filters, by its quoted and excluded words.

Quoted words must be said or shown in a moment, and excluded ones must not be in it at all. An item shows
excluded words where its confidence as a hit for them is at least EXCLUDED; without a query bank, where it
stands out more for them than for what is asked, by deviations over the sample of videos.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wordreel.catalogue.files import (
    FileConditions,
    FileRecord,
    first_files,
    passing_contents,
    required_moments,
)
from wordreel.search.filters import Filters
from wordreel.search.words.lexical import literal_phrase
from wordreel.types import Bool, Float64, Int64

if TYPE_CHECKING:
    from wordreel.search.snapshot import LibrarySnapshot
    from wordreel.search.text_search import TextSearch

EXCLUDED = 0.2
LEAST = 1.0  # deviations


@dataclass(frozen=True, eq=False)
class PassingVideos:
    """The videos of a snapshot that pass some filters, evaluated by the catalogue."""

    snapshot: LibrarySnapshot
    conditions: FileConditions
    passed: Bool | None  # by number of the video; None if all pass

    @classmethod
    def of(cls, snapshot: LibrarySnapshot, filters: Filters) -> PassingVideos:
        """Return the videos that pass some filters."""
        conditions = filters.conditions
        # The snapshot caches the result: a strong reference back would hold its mapped files, deleted ones
        # too, until the garbage collector runs.
        weak: LibrarySnapshot = weakref.proxy(snapshot)
        if conditions.empty:
            return cls(weak, conditions, None)
        numbers = snapshot.columns.numbers(passing_contents(snapshot.store.catalogue, conditions))
        passed = np.zeros(snapshot.columns.video_count, bool)
        passed[numbers[numbers >= 0]] = True
        return cls(weak, conditions, passed)

    @cached_property
    def count(self) -> int:
        """Return how many videos pass."""
        if self.passed is None:
            return self.snapshot.video_count()
        return int(self.passed[self.snapshot.video_numbers].sum())

    @cached_property
    def allowed(self) -> Bool | None:
        """`[rows]`: which items are of these videos; None if all rows are."""
        if self.passed is None:
            return self.snapshot.live if len(self.snapshot.columns.dead) else None
        allowed = np.asarray(self.passed[self.snapshot.columns.video] & self.snapshot.live)
        for moments in required_moments(self.snapshot.store.catalogue, self.conditions):
            videos = self.snapshot.video_numbers_of([moment.content for moment in moments])
            starts, ends = [moment.start for moment in moments], [moment.end for moment in moments]
            allowed &= _mask(len(allowed), self.snapshot.overlapping_rows(videos, starts, ends, wholes=False))
        return allowed

    def records(self, contents: Sequence[str]) -> dict[str, FileRecord]:
        """Return the first file of each of these videos that passes, if they are still in the library."""
        return first_files(self.snapshot.store.catalogue, self.conditions, contents)


def allowed_items(
    search: TextSearch, phrases: Sequence[str], without: Sequence[TextSearch], passing: PassingVideos
) -> Bool | None:
    """Return which items `[rows]` may be found; None if all.

    They pass the filters, hold each phrase and show nothing excluded.
    """
    allowed, snapshot = passing.allowed, search.searcher.snapshot
    if not phrases and not without:
        return allowed
    allowed = snapshot.live.copy() if allowed is None else allowed.copy()
    for phrase in phrases:
        items = _said_or_shown(snapshot, phrase)
        allowed &= _mask(len(allowed), items[snapshot.moment_places(items)])
    rows = np.flatnonzero(allowed)
    for excluded in without:
        shown = np.zeros(len(allowed), bool)
        shown[rows] = _shows(excluded, search, rows)
        shown[_said_or_shown(snapshot, excluded.text.text)] = True
        allowed &= ~shown
        allowed[_wholes_of(snapshot, np.flatnonzero(shown))] = False
    return allowed


def _said_or_shown(snapshot: LibrarySnapshot, words: str) -> Int64:
    """Return the items in which all these words are said or shown in order."""
    phrase = literal_phrase(words)
    return snapshot.term_matches([phrase])[phrase].items


def _shows(excluded: TextSearch, search: TextSearch, rows: Int64) -> Bool:
    """Which of some items show what is excluded."""
    if not excluded.text.understanding.any:
        return np.zeros(len(rows), bool)
    sure = excluded.confidences(rows)
    if sure is not None:
        return np.asarray(sure >= EXCLUDED)
    return np.asarray(_standing(excluded, rows) > np.maximum(_standing(search, rows), LEAST))


def _standing(search: TextSearch, rows: Int64) -> Float64:
    """By how many deviations over the best items of the sampled videos each item stands out."""
    rivals = search.rivals.scores.astype(np.float64)
    return np.asarray((search.plain(rows) - rivals.mean()) / max(rivals.std(), 1e-9))


def _wholes_of(snapshot: LibrarySnapshot, rows: Int64) -> Int64:
    """Return the whole videos of some items: they hold what the items show."""
    video, whole = snapshot.columns.video, snapshot.columns.clips["whole"] != 0
    return np.flatnonzero(whole & _mask(snapshot.columns.video_count, video[rows])[video])


def _mask(count: int, rows: NDArray[np.integer[Any]]) -> Bool:
    """Return `[count]`: true at these rows."""
    mask = np.zeros(count, bool)
    mask[rows] = True
    return mask
