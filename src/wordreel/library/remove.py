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


def drop_unreferenced(catalogue: Catalogue, track_files: TrackStore) -> int:
    """Remove contents without a file, then delete those of their track files that nothing else uses.

    The commit comes first: killed in between, files are left that nobody points at, which the next writer
    sweeps; the other order would leave rows that point at nothing.
    """
    with catalogue.transaction():
        hashes = catalogue.rows(
            """SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM files f WHERE f.content = tracks.content)"""
        )
        dropped = catalogue.run(
            "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.content = contents.content)"
        )
    drop_tracks(catalogue, track_files, (digest for (digest,) in hashes))
    return dropped


def drop_tracks(catalogue: Catalogue, track_files: TrackStore, hashes: Iterable[str]) -> None:
    """Delete those of these track files that the catalogue no longer names."""
    for digest in hashes:
        if catalogue.one("SELECT 1 FROM tracks WHERE hash = ? LIMIT 1", digest) is None:
            track_files.remove(digest)


def sweep(catalogue: Catalogue, track_files: TrackStore) -> int:
    """Delete what killed writers left behind; the number of files deleted."""
    referenced = {
        digest for (digest,) in catalogue.rows("SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL")
    }
    orphans = [digest for digest in track_files.all() if digest not in referenced]
    strays = track_files.strays()
    for digest in orphans:
        track_files.remove(digest)
    for name in strays:
        track_files.remove_stray(name)
    return len(orphans) + len(strays)
