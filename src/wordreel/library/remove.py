"""Take files out of the library, and what nothing points at any more."""

from __future__ import annotations

import os
from collections.abc import Iterable

from wordreel.library.catalogue import Catalogue
from wordreel.library.paths import exists, inside, named, shown, stored
from wordreel.library.tracks import TrackFiles


def remove_paths(catalogue: Catalogue, paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Forget files, and everything below folders; the media themselves are not touched."""
    gone: list[str] = []
    with catalogue.transaction():
        for path in map(named, paths):
            low, high = inside(path)
            bounds = (stored(path), low, high)
            where = "WHERE path = ? OR (path >= ? AND path < ?)"
            found = catalogue.rows(f"SELECT path FROM files {where} ORDER BY path", *bounds)  # noqa: S608
            gone += [shown(p) for (p,) in found]
            catalogue.run(f"DELETE FROM files {where}", *bounds)  # noqa: S608
            catalogue.run(f"DELETE FROM failures {where}", *bounds)  # noqa: S608
    return gone


def remove_missing(catalogue: Catalogue) -> list[str]:
    """Forget every file that is no longer on the disk."""
    gone: list[str] = []
    with catalogue.transaction():
        for table in ("files", "failures"):
            for (path,) in catalogue.rows(f"SELECT path FROM {table} ORDER BY path"):  # noqa: S608
                if not exists(shown(path)):
                    catalogue.run(f"DELETE FROM {table} WHERE path = ?", path)  # noqa: S608
                    if table == "files":
                        gone.append(shown(path))
    return gone


def drop_unreferenced(catalogue: Catalogue, track_files: TrackFiles) -> int:
    """Forget contents no file holds, then delete the track files of theirs that nothing else uses.

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


def drop_tracks(catalogue: Catalogue, track_files: TrackFiles, hashes: Iterable[str]) -> None:
    """Delete those of these track files that the catalogue no longer names."""
    for digest in hashes:
        if catalogue.one("SELECT 1 FROM tracks WHERE hash = ? LIMIT 1", digest) is None:
            track_files.remove(digest)


def sweep(catalogue: Catalogue, track_files: TrackFiles) -> int:
    """Delete what killed writers left behind; the number of files deleted."""
    named = {
        digest for (digest,) in catalogue.rows("SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL")
    }
    orphans = [digest for digest in track_files.all() if digest not in named]
    strays = track_files.strays()
    for digest in orphans:
        track_files.remove(digest)
    for path in strays:
        path.unlink(missing_ok=True)
    return len(orphans) + len(strays)
