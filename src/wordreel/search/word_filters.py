"""Quoted words, which must be said or shown in a moment, and excluded ones, which must not be in it at all.

An item shows excluded words where its confidence as a hit for them is at least EXCLUDED; without a query
bank, where it stands out more for them than for what is asked, by deviations over the sample of videos.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from wordreel.search.lexical import literal_phrase
from wordreel.types import Bool, Float64, Int64

if TYPE_CHECKING:
    from wordreel.search.passing_videos import PassingVideos
    from wordreel.search.snapshot import LibrarySnapshot
    from wordreel.search.text_search import TextSearch

EXCLUDED = 0.2
LEAST = 1.0  # deviations


def allowed_items(
    search: TextSearch, phrases: Sequence[str], without: Sequence[TextSearch], passing: PassingVideos
) -> Bool | None:
    """`[rows]`: the items that pass the filters, hold each phrase and show nothing excluded; None if all."""
    allowed, snapshot = passing.allowed, search.searcher.snapshot
    if not phrases and not without:
        return allowed
    allowed = snapshot.live.copy() if allowed is None else allowed.copy()
    for phrase in phrases:
        holding = np.zeros(len(allowed), bool)
        items = _said_or_shown(snapshot, phrase)
        holding[items[snapshot.moment_places(items)]] = True
        allowed &= holding
    rows = np.flatnonzero(allowed)
    for excluded in without:
        shown = np.zeros(len(allowed), bool)
        shown[rows] = _shows(excluded, search, rows)
        shown[_said_or_shown(snapshot, excluded.text.text)] = True
        allowed &= ~shown
        allowed[_wholes_of(snapshot, np.flatnonzero(shown))] = False
    return allowed


def _said_or_shown(snapshot: LibrarySnapshot, words: str) -> Int64:
    """The items in which all these words are said or shown in order."""
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
    """The whole videos of some items: they hold what the items show."""
    video, whole = snapshot.columns.video, snapshot.columns.clips["whole"] != 0
    shown = np.zeros(len(snapshot.columns.contents), bool)
    shown[video[rows]] = True
    return np.flatnonzero(whole & shown[video])
