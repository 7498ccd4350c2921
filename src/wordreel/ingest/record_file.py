"""Record a processed file in the catalogue, from the writer thread.

Each function that takes a store is one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Literal

from wordreel.catalogue.clips import ClipBounds
from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.passes import mark_quick, mark_thorough
from wordreel.catalogue.paths import file_date, from_blob, may_exist, to_blob
from wordreel.catalogue.remove import files_below
from wordreel.catalogue.store import INFO, LibraryStore
from wordreel.ingest.extract import ExpertResult
from wordreel.ingest.tasks import AddTask, EmbedContent, FailedFile, ProcessedFile

FileChange = Literal["added", "changed", "updated", "unchanged", "moved", "duplicates"]


def record_file(
    store: LibraryStore, processed: ProcessedFile, embed: EmbedContent | None = None
) -> tuple[FileChange, str]:
    """Record content, tracks, clips, words and path; return what changed and, for "moved", the old path.

    The track files are committed already. With `embed`, new clips of a content that searches find already are
    embedded before the transaction ends: they find the old ones until then, and the new ones from then on.
    """
    catalogue, task = store.catalogue, processed.task
    swapped = bool(embed is not None and processed.clips and store.clips(processed.content))
    # A kill rolls the transaction back, but not the embeddings: their ids must not be given out again.
    ids = reserve_clip_ids(catalogue, len(processed.clips)) if swapped else None
    with catalogue.transaction():
        if processed.info:
            catalogue.run(
                f"INSERT INTO contents (content, size, {INFO}, added_at) VALUES ({','.join('?' * 14)}) "  # noqa: S608
                "ON CONFLICT (content) DO UPDATE "
                "SET duration = excluded.duration, recorded = excluded.recorded",
                processed.content, task.stamp.size, *astuple(processed.info), time.time(),
            )  # fmt: skip
        for result in processed.results:
            _insert_track(catalogue, processed.content, result)
        if processed.clips:
            insert_clips(catalogue, processed.content, processed.clips, ids)
        if processed.info:
            mark = mark_quick if processed.analysis == "quick" else mark_thorough
            mark(catalogue, processed.content)
        recorded = _insert_path(catalogue, processed)
        if ids is not None and embed is not None:
            embed(processed.content)
        return recorded


def insert_clips(
    catalogue: Catalogue, content: str, clips: Sequence[ClipBounds], ids: Sequence[int] | None = None
) -> None:
    """Replace the clips of a content; the new ones get new ids, those reserved for them if given."""
    catalogue.run("DELETE FROM clips WHERE content = ?", content)
    numbers: Sequence[int | None] = ids or [None] * len(clips)  # None: the next one
    catalogue.run_many(
        "INSERT INTO clips (id, content, start, end, whole, shot) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (number, content, c.start, c.end, int(c.whole), c.shot)
            for number, c in zip(numbers, clips, strict=True)
        ],
    )


def reserve_clip_ids(catalogue: Catalogue, count: int) -> range:
    """Reserve ids that no other clip will ever get.

    Some clip must be in the catalogue already.
    """
    with catalogue.transaction():
        catalogue.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'clips'", count)
        row = catalogue.one("SELECT seq FROM sqlite_sequence WHERE name = 'clips'")
    last = int(row[0]) if row else 0
    return range(last - count + 1, last + 1)


def _insert_track(catalogue: Catalogue, content: str, result: ExpertResult) -> None:
    # Deleting a track deletes its words too.
    catalogue.run("DELETE FROM tracks WHERE content = ? AND expert = ?", content, result.expert)
    insert = "INSERT INTO tracks VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    key = (content, result.expert, result.fingerprint)
    if result.staged is None:
        catalogue.run(insert, *key, "absent", None, result.reason, 0, 0)
        return
    catalogue.run(insert, *key, "present", result.staged.hash, "", result.rows, result.dim)
    catalogue.run_many(
        "INSERT INTO words (content, expert, start, end, text, score) VALUES (?, ?, ?, ?, ?, ?)",
        [(content, result.expert, w.start, w.end, w.text, w.score) for w in result.words],
    )


def _insert_path(catalogue: Catalogue, processed: ProcessedFile) -> tuple[FileChange, str]:
    """Point the path at the content."""
    task, content, key = processed.task, processed.content, to_blob(processed.task.path)
    before = catalogue.one("SELECT content FROM files WHERE path = ?", key)
    rows = catalogue.rows("SELECT path FROM files WHERE content = ? ORDER BY path", content)
    holders = [from_blob(path) for (path,) in rows]
    lost = next((path for path in holders if path != task.path and not may_exist(path)), "")
    change: FileChange
    if before:
        change = "changed" if before[0] != content else "updated" if processed.results else "unchanged"
    elif lost:
        catalogue.run("DELETE FROM files WHERE path = ?", to_blob(lost))
        change = "moved"
    else:
        change = "duplicates" if holders else "added"
    recorded = catalogue.one("SELECT recorded FROM contents WHERE content = ?", content)
    captured = file_date(task.path, task.stamp.mtime_ns, recorded[0] if recorded else None)
    catalogue.run(
        """INSERT INTO files (path, content, size, mtime_ns, ctime_ns, inode, checked_ns, added_at,
               captured, captured_from)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (path) DO UPDATE SET content = excluded.content, size = excluded.size,
               mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, inode = excluded.inode,
               checked_ns = excluded.checked_ns, captured = excluded.captured,
               captured_from = excluded.captured_from""",
        key, content, *astuple(task.stamp), task.checked_ns, time.time(), *captured,
    )  # fmt: skip
    catalogue.run("DELETE FROM failures WHERE path = ?", key)
    return change, lost if change == "moved" else ""


def record_failure(store: LibraryStore, failed: FailedFile, expert_set: str) -> None:
    """Record that a file failed. If the path had other content before, that content is no longer there."""
    key, stamp = to_blob(failed.task.path), failed.task.stamp
    with store.catalogue.transaction():
        store.catalogue.run("DELETE FROM files WHERE path = ? AND content != ?", key, failed.content)
        store.catalogue.run(
            """INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (path) DO UPDATE SET size = excluded.size,
               mtime_ns = excluded.mtime_ns, recipe = excluded.recipe, reason = excluded.reason,
               failed_at = excluded.failed_at""",
            key, stamp.size, stamp.mtime_ns, expert_set, failed.reason, time.time(),
        )  # fmt: skip


def remove_not_media(store: LibraryStore, task: AddTask) -> None:
    """Remove a path that was media once and no longer is."""
    with store.catalogue.transaction():
        store.catalogue.run("DELETE FROM files WHERE path = ?", to_blob(task.path))
        store.catalogue.run("DELETE FROM failures WHERE path = ?", to_blob(task.path))


def remove_lost_failures(store: LibraryStore, roots: Iterable[str]) -> None:
    """Remove failures at or below `roots`, canonical paths, whose files are no longer there."""
    with store.catalogue.transaction():
        lost = [path for path in files_below(store.catalogue, roots, "failures") if not may_exist(path)]
        store.catalogue.run_many("DELETE FROM failures WHERE path = ?", [(to_blob(path),) for path in lost])
