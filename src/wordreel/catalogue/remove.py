"""Remove files from the library, and whatever nothing refers to any more.

Triggers keep a log of the clips that left the catalogue (`migrations/008_clip_log.sql`): whoever reads a
million embeddings goes on from the number seen last instead of comparing a million ids.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.paths import (
    absent_folder,
    from_blob,
    library_path,
    may_exist,
    prefix_bounds,
    to_blob,
)
from wordreel.catalogue.tracks import TrackStore

TABLES = ("files", "failures")  # of paths


@dataclass(frozen=True)
class MissingFiles:
    """Files of the library that are not on disk.

    Of `gone` ones the folder is there. `absent` folders, with their number of files, are not there now: they
    were moved, or are on a disk that is not plugged in.
    """

    gone: list[str]
    absent: dict[str, int]


def files_below(
    catalogue: Catalogue, paths: Iterable[str | os.PathLike[str]], table: str = "files"
) -> list[str]:
    """Return the files of the library (or those that failed) among `paths` and below them, in order."""
    found: set[bytes] = set()
    for path in map(library_path, paths):
        bounds = (to_blob(path), *prefix_bounds(path))
        query = f"SELECT path FROM {table} WHERE path = ? OR (path >= ? AND path < ?)"  # noqa: S608
        rows = catalogue.rows(query, *bounds)
        found.update(raw for (raw,) in rows)
    return [from_blob(raw) for raw in sorted(found)]


def missing_files(catalogue: Catalogue) -> MissingFiles:
    """Find the files that are not on disk."""
    return _missing(catalogue, "files")


def _missing(catalogue: Catalogue, table: str) -> MissingFiles:
    paths = [from_blob(raw) for (raw,) in catalogue.rows(f"SELECT path FROM {table} ORDER BY path")]  # noqa: S608
    lost = [path for path in paths if not may_exist(path)]
    folders = {os.path.dirname(path): path for path in lost}  # noqa: PTH120 - of a hundred thousand
    absent = {folder: absent_folder(path) for folder, path in folders.items()}
    of = [(path, absent[os.path.dirname(path)]) for path in lost]  # noqa: PTH120
    counts = Counter(folder for _, folder in of if folder is not None)
    return MissingFiles([path for path, folder in of if folder is None], dict(sorted(counts.items())))


def remove_paths(catalogue: Catalogue, paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Remove files, and everything below folders; the media themselves are not touched."""
    paths = list(paths)
    with catalogue.transaction():
        return _delete(catalogue, {table: files_below(catalogue, paths, table) for table in TABLES})


def remove_missing(catalogue: Catalogue) -> list[str]:
    """Remove every file that is gone; what is in folders that are not there now stays."""
    with catalogue.transaction():
        return _delete(catalogue, {table: _missing(catalogue, table).gone for table in TABLES})


def _delete(catalogue: Catalogue, found: Mapping[str, Sequence[str]]) -> list[str]:
    """Delete paths by table; return those of `files`."""
    for table, paths in found.items():
        catalogue.run_many(f"DELETE FROM {table} WHERE path = ?", [(to_blob(path),) for path in paths])  # noqa: S608
    return list(found["files"])


def delete_unreferenced(catalogue: Catalogue, forget: bool = False) -> list[str]:
    """Delete contents without a file; returns the track files that they named, for `drop_tracks`.

    In the transaction that takes the file away, so that the file and what is known of it go together. An
    add waits until its end: the content may turn up under another path. Tags and notes are kept for the
    return of the content (`kept_annotations`), unless `forget`.
    """
    with catalogue.transaction():
        gone = "content IN (SELECT content FROM contents_without_file)"
        hashes = catalogue.rows(f"SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL AND {gone}")  # noqa: S608
        if forget:
            catalogue.run(f"DELETE FROM annotations WHERE {gone}")  # noqa: S608
        catalogue.run(f"DELETE FROM contents WHERE {gone}")  # noqa: S608
    return [digest for (digest,) in hashes]


def drop_unreferenced(catalogue: Catalogue, track_files: TrackStore) -> None:
    """Delete contents without a file, then those of their track files that nothing else uses."""
    drop_tracks(catalogue, track_files, delete_unreferenced(catalogue))


def drop_tracks(catalogue: Catalogue, track_files: TrackStore, hashes: Iterable[str]) -> None:
    """Delete those of these track files that the catalogue no longer names.

    After the commit that takes away their rows: killed in between, files are left that nobody points at,
    which are swept; the other order would leave rows that point at nothing.
    """
    named = "SELECT 1 FROM tracks WHERE hash = ? LIMIT 1"
    track_files.remove_all([digest for digest in hashes if catalogue.one(named, digest) is None])


def sweep(catalogue: Catalogue, track_files: TrackStore) -> int:
    """Delete what writers that were killed or failed left behind; the number of files deleted."""
    drop_unreferenced(catalogue, track_files)
    referenced = {
        digest for (digest,) in catalogue.rows("SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL")
    }
    orphans = [digest for digest in track_files.all() if digest not in referenced]
    strays = track_files.strays()
    track_files.remove_all(orphans)
    track_files.remove_strays(strays)
    return len(orphans) + len(strays)


@dataclass(frozen=True)
class ClipChanges:
    """What happened to the clips since the log stood at some number."""

    number: int  # where the log stands now
    removed: list[int]  # ids deleted since
    hidden: list[int]  # ids whose content has lost its last file
    newest: int  # the highest id that was ever given


def changes_since(catalogue: Catalogue, number: int) -> ClipChanges:
    """Return what changed since the log stood at `number`."""
    with catalogue.transaction(reading=True):
        ((stands,),) = catalogue.rows("SELECT coalesce(max(number), 0) FROM removed_clips")
        removed = catalogue.rows("SELECT id FROM removed_clips WHERE number > ?", number)
        hidden = catalogue.rows(
            "SELECT id FROM clips WHERE content IN (SELECT content FROM contents_without_file)"
        )
        ((newest,),) = catalogue.rows(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'clips'"
        )
    return ClipChanges(stands, [i for (i,) in removed], [i for (i,) in hidden], newest)
