"""Check the tracks of a library: there, undamaged, as the catalogue says, and of sane values."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import numpy as np

from wordreel.catalogue.records import TrackRow
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks.track_files import IMPORTED_FINGERPRINT, decode
from wordreel.errors import WordreelError
from wordreel.experts import registry
from wordreel.maintain.library_problem import LibraryProblem
from wordreel.media.types import FrameNeed
from wordreel.util.degenerate import track_fault

MIN_CONTENTS = 4  # an expert is suspected only after this many contents


def missing_tracks(store: LibraryStore) -> Iterator[LibraryProblem]:
    present = set(store.track_files.all())
    for row in store.tracks():
        if row.hash and row.hash not in present:
            yield _broken(row, "is missing")


def damaged_tracks(store: LibraryStore) -> Iterator[LibraryProblem]:
    """Each file: there, named after its bytes, of the shape the catalogue says, and of sane values."""
    words = {
        (content, expert): n
        for content, expert, n in store.catalogue.rows(
            "SELECT content, expert, count(*) FROM words GROUP BY 1, 2"
        )
    }
    bodies: dict[str, Counter[str]] = {}
    paths = {video.content: video.paths[0] for video in store.videos()}
    shots: dict[str, int] = dict(
        store.catalogue.rows("SELECT content, max(shot) + 1 FROM clips GROUP BY content")
    )
    pictures = {name for name in store.expert_names() if _sees_frames(name)}
    for row in store.tracks():
        if row.hash is None:
            continue
        try:
            data = store.track_files.read(row.hash)
        except OSError:
            yield _broken(row, "is missing")
            continue
        if hashlib.sha256(data).hexdigest() != row.hash:
            yield _broken(row, "does not hold the bytes it is named after")
            continue
        try:
            track = decode(data)
        except Exception as error:
            yield _broken(row, f"cannot be read: {error}")
            continue
        values = track.values
        if values.shape != (row.rows, row.dim):
            yield _broken(row, f"is {values.shape}, the catalogue says {(row.rows, row.dim)}")
        elif len(track.words) != words.get((row.content, row.expert), 0):
            yield _broken(row, "has other words than the catalogue")
        elif not (np.isfinite(values).all() and np.isfinite(track.times).all()):
            yield _broken(row, "holds values that are not finite")
        elif fault := track_fault(track, row.expert in pictures, shots.get(row.content, 0)):
            # Extracting again would give the same: a person has to look at this.
            name = paths.get(row.content, f"content {row.content[:12]}")
            yield LibraryProblem(
                "degenerate",
                f"expert {row.expert} returned {fault} for {name}",
                repairable=False,
                note=_is_imported(row.fingerprint),
            )
        rows = hashlib.sha256(np.unique(values, axis=0).tobytes()).hexdigest()
        if not _is_imported(row.fingerprint):  # others may mark what is missing with zeros
            bodies.setdefault(row.expert, Counter())[rows] += 1
    yield from _degenerate(bodies)


def _sees_frames(expert: str) -> bool:
    """Whether rows of an expert describe frames; False for imported ones, of which nothing is known."""
    try:
        return isinstance(registry.card(expert).need, FrameNeed)
    except WordreelError:
        return False


def _is_imported(fingerprint: str) -> bool:
    """Whether a track was computed elsewhere and imported."""
    return fingerprint.startswith(IMPORTED_FINGERPRINT)


def _degenerate(bodies: dict[str, Counter[str]]) -> Iterator[LibraryProblem]:
    """Two videos may share a black leader or a song; if most of a library does, the expert is broken."""
    for expert, counts in bodies.items():
        total, most = counts.total(), max(counts.values())
        if total >= MIN_CONTENTS and most > total / 2:
            yield LibraryProblem(
                "degenerate",
                f"expert {expert} returned the same rows for {most} of {total} different contents",
                repairable=False,
            )


def _broken(row: TrackRow, what: str) -> LibraryProblem:
    text = f"the {row.expert} track {row.hash} of content {row.content[:12]} {what}"
    return LibraryProblem("track", text, key=(row.content, row.expert))
