"""Check every invariant of a library, one function each."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from wordreel.catalogue.lock import writer_at_work
from wordreel.catalogue.paths import from_blob, is_imported
from wordreel.catalogue.records import FileStamp, TrackRow
from wordreel.catalogue.remove import missing_files
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import IMPORTED_FINGERPRINT, decode
from wordreel.embed.embedding_cache import EmbeddingCache, caches, read_manifest
from wordreel.errors import LibraryError, WordreelError
from wordreel.experts import registry
from wordreel.maintain.repair import LibraryProblem
from wordreel.media.types import FrameNeed
from wordreel.util import checksum
from wordreel.util.degenerate import track_fault

MIN_CONTENTS = 4  # an expert is suspected only after this many contents
STORED_TYPES = {
    "INTEGER": "'integer', 'null'",
    "REAL": "'real', 'null'",
    "TEXT": "'text', 'null'",
    "BLOB": "'blob', 'null'",
}
"""What SQLite's `typeof` says of the values of a column, by its declared type."""
FULL_TEXT = {"words_fts": "words", "annotations_fts": "tags and notes"}
LEFTOVERS = ("orphan", "stray", "unreferenced", "unfinished")  # of killed writers, or of one at work


def verify(store: LibraryStore, deep: bool = True) -> list[LibraryProblem]:
    """Check every invariant of a library.

    Args:
        store: The library to check.
        deep: Also read every track file and every embedding.

    Returns:
        All problems; empty for a sound library. What a killed writer left behind is not among them while
        another one is at work, whose files look the same.

    >>> import tempfile
    >>> with LibraryStore.create_or_open(tempfile.mkdtemp()) as store:
    ...     verify(store)
    []
    """
    tracks = _damaged_tracks if deep else _missing_tracks
    checks: list[Callable[[LibraryStore], Iterator[LibraryProblem]]] = [
        _database, _values, _orphans, _contents, _clips, _words_index, _caches, _files, tracks
    ]  # fmt: skip
    writing = writer_at_work(store.path / "lock")
    problems = [problem for check in checks for problem in check(store)]
    if writing or writer_at_work(store.path / "lock"):
        problems = [problem for problem in problems if problem.kind not in LEFTOVERS]
    return problems


def _database(store: LibraryStore) -> Iterator[LibraryProblem]:
    for (text,) in store.catalogue.rows("PRAGMA integrity_check"):
        if text != "ok":
            yield LibraryProblem("database", str(text), repairable=False)
    for table, _, parent, _ in store.catalogue.rows("PRAGMA foreign_key_check"):
        yield LibraryProblem(
            "database", f"a row of {table} points at a row of {parent} that is not there", repairable=False
        )


def _values(store: LibraryStore) -> Iterator[LibraryProblem]:
    """SQLite stores any value in any column: none of another type than its own was written by us."""
    catalogue = store.catalogue
    tables = catalogue.rows(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
    )
    for (table,) in tables:
        if table.startswith(("sqlite_", "words_fts")):
            continue
        for _, column, declared, *_ in catalogue.rows(f'PRAGMA table_info("{table}")'):
            kinds = STORED_TYPES.get(declared)
            if kinds is None:
                continue
            wrong = f'SELECT count(*) FROM "{table}" WHERE typeof("{column}") NOT IN ({kinds})'  # noqa: S608
            for (count,) in catalogue.rows(wrong):
                if count:
                    what = f"{count} rows of {table} hold a {column} that is not {declared}"
                    yield LibraryProblem("database", what, repairable=False)


def _orphans(store: LibraryStore) -> Iterator[LibraryProblem]:
    named = {row.hash for row in store.tracks()}
    for digest in store.track_files.all():
        if digest not in named:
            yield LibraryProblem("orphan", f"track file {digest} is used by nothing", key=(digest,))
    for name in store.track_files.strays():
        yield LibraryProblem("stray", f"{name} was left by an interrupted run", key=(name,))


def _contents(store: LibraryStore) -> Iterator[LibraryProblem]:
    query = "SELECT content FROM contents WHERE content NOT IN (SELECT content FROM files)"
    for (content,) in store.catalogue.rows(query):
        yield LibraryProblem("unreferenced", f"content {content[:12]} belongs to no file", key=(content,))


def _clips(store: LibraryStore) -> Iterator[LibraryProblem]:
    for video in store.videos():
        clips = store.clips(video.content)
        wholes = [c for c in clips if c.whole]
        pieces = [c for c in clips if not c.whole]
        end = video.info.duration if video.info.kind != "image" else 0.0
        why = ""
        if [(c.start, c.end) for c in wholes] != [(0.0, end)]:
            why = "has no clip of its whole"
        elif pieces and (pieces[0].start != 0.0 or pieces[-1].end != end):
            why = "is not covered by its clips from start to end"
        elif any(a.end != b.start for a, b in pairwise(pieces)):
            why = "has clips with gaps or overlaps between them"
        elif any(c.end <= c.start for c in pieces):
            why = "has an empty clip"
        if why:
            yield LibraryProblem("clips", f"content {video.content[:12]} {why}", key=(video.content,))


def _words_index(store: LibraryStore) -> Iterator[LibraryProblem]:
    if store.read_only:  # SQLite checks the index by a statement that writes
        return
    for index, what in FULL_TEXT.items():
        try:
            store.catalogue.run(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
        except LibraryError as error:
            message = f"the full-text index does not match the {what}: {error.message}"
            yield LibraryProblem("words", message, key=(index,))


def _caches(store: LibraryStore) -> Iterator[LibraryProblem]:
    for folder in caches(store):
        manifest = read_manifest(folder)
        if manifest is None:
            if any(folder.iterdir()):
                # Killed in its first append or while it was deleted: the next embedding begins anew.
                text = f"{folder} has no manifest; its embeddings are computed again"
                yield LibraryProblem("unfinished", text, note=True, key=(str(folder),))
            continue
        try:
            errors = EmbeddingCache(store, folder.name, manifest.experts, manifest.dim).problems()
        except LibraryError as error:
            errors = [str(error)]
        for text in errors:
            yield LibraryProblem("cache", text, key=(str(folder),))
        for built in sorted(folder.glob(f"index/*/{checksum.NAME}")):
            if built.parent.suffix == ".new":  # unfinished: the next build begins anew
                continue
            for text in checksum.damaged_files(built.parent):
                yield LibraryProblem("cache", text, key=(str(built.parent.parent),))


def _files(store: LibraryStore) -> Iterator[LibraryProblem]:
    """Files that changed, are gone, or are in folders that are not there now."""
    missing = missing_files(store.catalogue)
    for path in missing.gone:
        yield LibraryProblem("gone", f"{path} is no longer there", repairable=False, note=True, key=(path,))
    for folder, count in missing.absent.items():
        what = f"{folder} is not there now ({count} {'file' if count == 1 else 'files'} of the library)"
        yield LibraryProblem("absent", what, repairable=False, note=True, key=(folder,))
    for raw, *stamp in store.catalogue.rows(
        "SELECT path, size, mtime_ns, ctime_ns, inode FROM files ORDER BY path"
    ):
        path = from_blob(raw)
        if is_imported(path):
            continue
        try:
            now = FileStamp.of(Path(path).stat())
        except OSError:
            continue
        then = FileStamp(*stamp)
        if (now.size, now.mtime_ns) != (then.size, then.mtime_ns):
            yield LibraryProblem(
                "changed", f"{path} has changed since it was added", repairable=False, note=True, key=(path,)
            )


def _missing_tracks(store: LibraryStore) -> Iterator[LibraryProblem]:
    """Check that each track file is there."""
    present = set(store.track_files.all())
    for row in store.tracks():
        if row.hash and row.hash not in present:
            yield _broken(row, "is missing")


def _damaged_tracks(store: LibraryStore) -> Iterator[LibraryProblem]:
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
                note=row.fingerprint.startswith(IMPORTED_FINGERPRINT),
            )
        rows = hashlib.sha256(np.unique(values, axis=0).tobytes()).hexdigest()
        if not row.fingerprint.startswith(IMPORTED_FINGERPRINT):  # others may mark what is missing with zeros
            bodies.setdefault(row.expert, Counter())[rows] += 1
    yield from _degenerate(bodies)


def _sees_frames(expert: str) -> bool:
    """Whether rows of an expert describe frames; False for imported ones, of which nothing is known."""
    try:
        return isinstance(registry.card(expert).need, FrameNeed)
    except WordreelError:
        return False


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
