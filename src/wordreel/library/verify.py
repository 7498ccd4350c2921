"""Check every promise the library makes about itself. One function per promise."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from wordreel.errors import LibraryError
from wordreel.library.embeddings import EmbeddingCache, caches, read_manifest
from wordreel.library.paths import is_imported, shown
from wordreel.library.records import TrackRow
from wordreel.library.scan import Stamp
from wordreel.library.store import LibraryStore
from wordreel.library.tracks import FOREIGN, decode

ALIKE = 4  # an expert is suspected only when it has seen at least this many contents


@dataclass(frozen=True)
class Problem:
    """One broken promise. A `note` is not the library's fault: a file moved away, say."""

    kind: str
    what: str
    repairable: bool = True
    note: bool = False
    key: tuple[str, ...] = ()  # what `repair` needs to find it again


def verify(store: LibraryStore, deep: bool = True) -> list[Problem]:
    """Every problem found; empty for a sound library. `deep` also reads every track file and cache."""
    checks: list[Callable[[LibraryStore], Iterator[Problem]]] = [
        _database, _orphans, _contents, _clips, _words_index, _caches, _files
    ]  # fmt: skip
    checks.append(_tracks if deep else _tracks_exist)
    return [problem for check in checks for problem in check(store)]


def _database(store: LibraryStore) -> Iterator[Problem]:
    for (text,) in store.catalogue.rows("PRAGMA integrity_check"):
        if text != "ok":
            yield Problem("database", str(text), repairable=False)
    for table, _, parent, _ in store.catalogue.rows("PRAGMA foreign_key_check"):
        yield Problem(
            "database", f"a row of {table} points at a row of {parent} that is not there", repairable=False
        )


def _orphans(store: LibraryStore) -> Iterator[Problem]:
    named = {row.hash for row in store.tracks()}
    for digest in store.track_files.all():
        if digest not in named:
            yield Problem("orphan", f"track file {digest} belongs to nothing", key=(digest,))
    for path in store.track_files.strays():
        yield Problem("stray", f"{path} was left by an interrupted run", key=(str(path),))


def _contents(store: LibraryStore) -> Iterator[Problem]:
    query = "SELECT content FROM contents WHERE content NOT IN (SELECT content FROM files)"
    for (content,) in store.catalogue.rows(query):
        yield Problem("unreferenced", f"content {content[:12]} belongs to no file", key=(content,))


def _clips(store: LibraryStore) -> Iterator[Problem]:
    for video in store.videos():
        clips = store.clips(video.content)
        wholes = [c for c in clips if c.whole]
        pieces = [c for c in clips if not c.whole]
        end = video.info.duration if video.info.kind != "image" else 0.0
        why = ""
        if [(c.start, c.end) for c in wholes] != [(0.0, end)]:
            why = "has no clip of its whole"
        elif pieces and (pieces[0].start != 0.0 or pieces[-1].end != end):
            why = "is not covered by its clips from beginning to end"
        elif any(a.end != b.start for a, b in pairwise(pieces)):
            why = "has clips with gaps or overlaps between them"
        elif any(c.end <= c.start for c in pieces):
            why = "has an empty clip"
        if why:
            yield Problem("clips", f"content {video.content[:12]} {why}", key=(video.content,))


def _words_index(store: LibraryStore) -> Iterator[Problem]:
    try:
        store.catalogue.run("INSERT INTO words_fts (words_fts, rank) VALUES ('integrity-check', 1)")
    except LibraryError as error:
        yield Problem("words", f"the index of words does not match the words: {error}")


def _caches(store: LibraryStore) -> Iterator[Problem]:
    for folder in caches(store):
        manifest = read_manifest(folder)
        if manifest is None:
            if any(folder.iterdir()):
                # Killed in its first append, or robbed of its manifest: none of its rows count either way.
                yield Problem("unfinished", f"{folder} has no manifest", key=(str(folder),))
            continue
        try:
            found = EmbeddingCache(store, folder.name, manifest.experts, manifest.dim).problems()
        except LibraryError as error:
            found = [str(error)]
        for text in found:
            yield Problem("cache", text, key=(str(folder),))


def _files(store: LibraryStore) -> Iterator[Problem]:
    """What happened to the files since; `wordreel add` deals with it."""
    for raw, *stamp in store.catalogue.rows(
        "SELECT path, size, mtime_ns, ctime_ns, inode FROM files ORDER BY path"
    ):
        path = shown(raw)
        if is_imported(path):
            continue
        try:
            now = Stamp.of(Path(path).stat())
        except OSError:
            yield Problem("gone", f"{path} is no longer there", repairable=False, note=True, key=(path,))
            continue
        then = Stamp(*stamp)
        if (now.size, now.mtime_ns) != (then.size, then.mtime_ns):
            yield Problem(
                "changed", f"{path} has changed since it was added", repairable=False, note=True, key=(path,)
            )


def _tracks_exist(store: LibraryStore) -> Iterator[Problem]:
    for row in store.tracks():
        if row.hash and not store.track_files.path(row.hash).is_file():
            yield _broken(row, "is missing")


def _tracks(store: LibraryStore) -> Iterator[Problem]:
    """Each file: there, named after its bytes, of the shape the catalogue says, and of sane values."""
    words = {
        (content, expert): n
        for content, expert, n in store.catalogue.rows(
            "SELECT content, expert, count(*) FROM words GROUP BY 1, 2"
        )
    }
    bodies: dict[str, Counter[str]] = {}
    for row in store.tracks():
        if row.hash is None:
            continue
        try:
            data = store.track_files.path(row.hash).read_bytes()
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
            yield _broken(row, "holds values that are not finite numbers")
        elif row.dim > 1 and (values == values.flat[0]).all():
            # Redoing would give the same: this is for a person to look at.
            yield Problem(
                "degenerate",
                f"expert {row.expert} gave the same number everywhere for content {row.content[:12]}",
                repairable=False,
                note=_foreign(row.fingerprint),
            )
        rows = hashlib.sha256(np.unique(values, axis=0).tobytes()).hexdigest()
        if not _foreign(row.fingerprint):  # others may mark what is missing with zeros
            bodies.setdefault(row.expert, Counter())[rows] += 1
    yield from _alike(bodies)


def _foreign(fingerprint: str) -> bool:
    """Whether a track was imported: what others computed is theirs to answer for."""
    return fingerprint.startswith(FOREIGN)


def _alike(bodies: dict[str, Counter[str]]) -> Iterator[Problem]:
    """Two videos may share a black leader or a song; most of a library doing so is a dead expert."""
    for expert, counts in bodies.items():
        total, most = counts.total(), max(counts.values())
        if total >= ALIKE and most > total / 2:
            yield Problem(
                "degenerate",
                f"expert {expert} gave the same rows for {most} of {total} different contents",
                repairable=False,
            )


def _broken(row: TrackRow, what: str) -> Problem:
    text = f"the {row.expert} track {row.hash} of content {row.content[:12]} {what}"
    return Problem("track", text, key=(row.content, row.expert))
