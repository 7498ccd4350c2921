"""The two passes over a file: which of them a content has had, and what the thorough one should take next.

The quick pass looks at key frames, so that every file can be found within minutes; the thorough one then runs
all experts on everything. A track of the quick pass has a fingerprint of its own, so it is never taken for a
thorough one, and the thorough pass replaces it. What users may keep of a hit is its content and its seconds;
both stay valid when the stretches between key frames give way to shots. Ids of clips are internal, and new
after each pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from wordreel.catalogue.clips import SHOTS_EXPERT, Span, shots_of
from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.paths import from_blob
from wordreel.media.types import MediaInfo
from wordreel.types import Track

if TYPE_CHECKING:
    from wordreel.catalogue.store import LibraryStore

Pass = Literal["quick", "thorough"]
PASSES: tuple[Pass, ...] = ("quick", "thorough")
QUICK_PREFIX = "quick-"
LATEST = 100  # returned contents that are looked at when the next file is chosen


def quick_fingerprint(fingerprint: str) -> str:
    """Return the fingerprint of an expert's track of key frames alone.

    >>> quick_fingerprint("1f2e3d4c5b6a7988")
    'quick-1f2e3d4c5b6a7988'
    """
    return QUICK_PREFIX + fingerprint


def is_quick_track(fingerprint: str) -> bool:
    """Return whether a fingerprint is that of a track of key frames."""
    return fingerprint.startswith(QUICK_PREFIX)


def is_version(fingerprint: str, wanted: str | None) -> bool:
    """Return whether a track is by this version of its expert; true if no version is wanted.

    Tracks of key frames count like tracks of all frames.
    """
    return wanted is None or fingerprint in (wanted, quick_fingerprint(wanted))


def is_quick(catalogue: Catalogue, content: str) -> bool:
    """Return whether a content has had the quick pass only."""
    return catalogue.one("SELECT 1 FROM quick_contents WHERE content = ?", content) is not None


def mark_quick(catalogue: Catalogue, content: str) -> None:
    """Record that a content has had the quick pass alone."""
    catalogue.run("INSERT OR IGNORE INTO quick_contents VALUES (?)", content)


def mark_thorough(catalogue: Catalogue, content: str) -> None:
    """Record the thorough pass of a content; remove tracks of the quick one that it did not replace.

    Their words and the entry of what searches returned go with them.
    """
    catalogue.run(
        "DELETE FROM tracks WHERE content = ? AND fingerprint >= ? AND fingerprint < ?",
        content, QUICK_PREFIX, QUICK_PREFIX + "\uffff",
    )  # fmt: skip
    catalogue.run("DELETE FROM quick_contents WHERE content = ?", content)


def quick_contents(catalogue: Catalogue) -> frozenset[str]:
    """Return contents that have had the quick pass only."""
    return frozenset(content for (content,) in catalogue.rows("SELECT content FROM quick_contents"))


@dataclass(frozen=True)
class WaitingFile:
    """A file whose content waits for the thorough pass."""

    path: str
    content: str


def waiting_files(catalogue: Catalogue, retry_failed: bool = False) -> list[WaitingFile]:
    """Return one file of each content that waits for the thorough pass and has not failed in it."""
    rows = catalogue.rows(
        """SELECT min(f.path), f.content FROM files f JOIN quick_contents q ON q.content = f.content
           WHERE ? OR NOT EXISTS (
               SELECT 1 FROM failures x JOIN files g ON g.path = x.path WHERE g.content = f.content)
           GROUP BY f.content ORDER BY f.content""",
        retry_failed,
    )
    return [WaitingFile(from_blob(path), content) for path, content in rows]


def note_returned(store: LibraryStore, contents: Iterable[str]) -> None:
    """Note that a search returned these contents. Written outside the writer's lock, as jobs are."""
    if store.read_only:
        return
    now = time.time()
    store.catalogue.run_many(
        """INSERT INTO returned_contents SELECT content, ? FROM quick_contents WHERE content = ?
           ON CONFLICT (content) DO UPDATE SET returned_at = excluded.returned_at""",
        [(now, content) for content in contents],
    )


def latest_returned(catalogue: Catalogue) -> list[str]:
    """Return the contents that searches returned and that wait for the thorough pass, the latest first."""
    rows = catalogue.rows(
        "SELECT content FROM returned_contents ORDER BY returned_at DESC, content LIMIT ?", LATEST
    )
    return [content for (content,) in rows]


def moment_spans(store: LibraryStore, content: str, info: MediaInfo) -> list[Span] | None:
    """Return where the moments of a stored content lie.

    After the quick pass they lie between key frames; otherwise they are its shots.
    """
    if not is_quick(store.catalogue, content):
        return shots_of(store.track(content, SHOTS_EXPERT), info.duration)
    for row in store.tracks(content):
        if row.hash is not None and is_quick_track(row.fingerprint) and row.expert != TEXT_EXPERT:
            return stretches(store.load_track(row.hash), info.duration)
    return None


TEXT_EXPERT = "ocr"  # whose rows are texts, not frames


def stretches(track: Track, end: float) -> list[Span]:
    """Return the spans from each key frame to the next, from a track with a row for each."""
    return stretches_between(track.times[:, 0].tolist(), end)


def stretches_between(starts: Sequence[float], end: float) -> list[Span]:
    """Return the stretches between key frames, the last until the end."""
    edges = [0.0, *(start for start in starts if 0.0 < start < end), end]
    return list(pairwise(edges))
