"""Lists of what a library holds, for people who browse it."""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.catalogue.passes import Pass
from wordreel.catalogue.paths import from_blob
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.store import LibraryStore


@dataclass(frozen=True)
class ListedVideo:
    """One content under the first of its paths."""

    content: str
    path: str
    kind: str
    duration: float
    added_at: float
    analysis: Pass


def list_videos(store: LibraryStore) -> list[ListedVideo]:
    """Every content that has a file, the newest first."""
    rows = store.catalogue.rows(
        """SELECT f.content, min(f.path), c.kind, c.duration, min(f.added_at) AS since,
                  CASE WHEN q.content IS NULL THEN 'thorough' ELSE 'quick' END
           FROM files f JOIN contents c ON c.content = f.content
           LEFT JOIN quick_contents q ON q.content = f.content
           GROUP BY f.content ORDER BY since DESC, f.content"""
    )
    return [ListedVideo(content, from_blob(path), *rest) for content, path, *rest in rows]


def count_videos(store: LibraryStore) -> tuple[int, float]:
    """How many contents have a file, and their seconds."""
    row = store.catalogue.one(
        "SELECT count(*), coalesce(sum(duration), 0) FROM contents c "
        "WHERE EXISTS (SELECT 1 FROM files f WHERE f.content = c.content)"
    )
    return (int(row[0]), float(row[1])) if row else (0, 0.0)


def files_of(store: LibraryStore, content: str) -> list[tuple[str, FileStamp]]:
    """Return the path and stamp of every file that had this content when it was added, by path."""
    rows = store.catalogue.rows(
        "SELECT path, size, mtime_ns, ctime_ns, inode FROM files WHERE content = ? ORDER BY path", content
    )
    return [(from_blob(path), FileStamp(*stamp)) for path, *stamp in rows]
