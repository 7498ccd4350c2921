"""Remove files from the library, and whatever nothing refers to any more."""

from __future__ import annotations

import os
from collections.abc import Iterable

from wordreel.library.catalogue import Catalogue
from wordreel.library.paths import from_blob, library_path, may_exist, prefix_bounds, to_blob
from wordreel.library.track_store import TrackStore


def remove_paths(catalogue: Catalogue, paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Remove files, and everything below folders; the media themselves are not touched."""
    gone: list[str] = []
    with catalogue.transaction():
        for path in map(library_path, paths):
            low, high = prefix_bounds(path)
            bounds = (to_blob(path), low, high)
            where = "WHERE path = ? OR (path >= ? AND path < ?)"
            rows = catalogue.rows(f"SELECT path FROM files {where} ORDER BY path", *bounds)  # noqa: S608
            gone += [from_blob(p) for (p,) in rows]
            catalogue.run(f"DELETE FROM files {where}", *bounds)  # noqa: S608
            catalogue.run(f"DELETE FROM failures {where}", *bounds)  # noqa: S608
    return gone


def remove_missing(catalogue: Catalogue) -> list[str]:
    """Remove every file that is no longer on disk."""
    gone: list[str] = []
    with catalogue.transaction():
        for table in ("files", "failures"):
            for (path,) in catalogue.rows(f"SELECT path FROM {table} ORDER BY path"):  # noqa: S608
                if not may_exist(from_blob(path)):
                    catalogue.run(f"DELETE FROM {table} WHERE path = ?", path)  # noqa: S608
                    if table == "files":
                        gone.append(from_blob(path))
    return gone


def delete_unreferenced(catalogue: Catalogue) -> list[str]:
    """Delete contents without a file; returns the track files that they named, for `drop_tracks`.

    In the transaction that takes the file away, so that the file and what is known of it go together. An
    add waits until its end: the content may turn up under another path.
    """
    with catalogue.transaction():
        gone = "content IN (SELECT content FROM contents_without_file)"
        hashes = catalogue.rows(f"SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL AND {gone}")  # noqa: S608
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
