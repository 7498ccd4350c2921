"""Tell the catalogue: each function here is one transaction, done by the one writer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import astuple

from wordreel.library.paths import exists, inside, settle, shown, stored
from wordreel.library.plan import Job
from wordreel.library.progress import AddReport
from wordreel.library.store import LibraryStore
from wordreel.library.study import Failed, Made, Ready
from wordreel.types import Track


def record(store: LibraryStore, ready: Ready, report: AddReport, placed: bool = False) -> None:
    """Tracks into their places (unless `placed`), then content, tracks, clips, words and file in one
    transaction."""
    for made in ready.made:
        if made.staged and not placed:
            store.track_files.place(made.staged)
    catalogue, job = store.catalogue, ready.job
    with catalogue.transaction():
        if ready.info:
            catalogue.run(
                f"INSERT INTO contents VALUES ({','.join('?' * 13)})",  # noqa: S608
                ready.content, job.stamp.size, *astuple(ready.info), time.time(),
            )  # fmt: skip
        for made in ready.made:
            _put_track(store, ready.content, made)
        if ready.cuts:
            catalogue.run("DELETE FROM clips WHERE content = ?", ready.content)
            catalogue.run_many(
                "INSERT INTO clips (content, start, end, whole, shot) VALUES (?, ?, ?, ?, ?)",
                [(ready.content, c.start, c.end, int(c.whole), c.shot) for c in ready.cuts],
            )
        _put_file(store, ready, report)
    report.media_seconds += ready.seconds


def _put_track(store: LibraryStore, content: str, made: Made) -> None:
    catalogue, answer = store.catalogue, made.answer
    catalogue.run(
        "DELETE FROM tracks WHERE content = ? AND expert = ?", content, made.expert
    )  # words go with it
    insert = "INSERT INTO tracks VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    if not isinstance(answer, Track) or made.staged is None:
        reason = "" if isinstance(answer, Track) else answer.reason
        catalogue.run(insert, content, made.expert, made.fingerprint, "absent", None, reason, 0, 0)
        return
    catalogue.run(
        insert,
        content,
        made.expert,
        made.fingerprint,
        "present",
        made.staged.hash,
        "",
        len(answer),
        answer.dim,
    )
    catalogue.run_many(
        "INSERT INTO words (content, expert, start, end, text, score) VALUES (?, ?, ?, ?, ?, ?)",
        [(content, made.expert, w.start, w.end, w.text, w.score) for w in answer.words],
    )


def _put_file(store: LibraryStore, ready: Ready, report: AddReport) -> None:
    """Point the path at the content, and say what that amounts to."""
    catalogue, job, content = store.catalogue, ready.job, ready.content
    before = catalogue.one("SELECT content FROM files WHERE path = ?", stored(job.path))
    holders = [
        shown(p) for (p,) in catalogue.rows("SELECT path FROM files WHERE content = ? ORDER BY path", content)
    ]
    lost = next((p for p in holders if p != job.path and not exists(p)), None)
    if before:
        if before[0] != content:
            report.changed.append(job.path)
        elif ready.made:
            report.updated.append(job.path)
        else:
            report.skipped += 1
    elif lost is not None:
        catalogue.run("DELETE FROM files WHERE path = ?", stored(lost))
        report.moved.append((lost, job.path))
        if lost in report.gone:
            report.gone.remove(lost)
    elif holders:
        report.duplicates.append(job.path)
    else:
        report.added.append(job.path)
    stamp = job.stamp
    catalogue.run(
        """INSERT INTO files (path, content, size, mtime_ns, ctime_ns, inode, checked_ns, added_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (path) DO UPDATE SET content = excluded.content, size = excluded.size,
               mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, inode = excluded.inode,
               checked_ns = excluded.checked_ns""",
        stored(job.path), content, stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode,
        job.checked_ns, time.time(),
    )  # fmt: skip
    catalogue.run("DELETE FROM failures WHERE path = ?", stored(job.path))


def record_failure(store: LibraryStore, failed: Failed, recipe: str) -> None:
    """Remember that a file failed. If it held something else before, that is no longer what is there."""
    job = failed.job
    key, stamp = stored(job.path), job.stamp
    with store.catalogue.transaction():
        store.catalogue.run("DELETE FROM files WHERE path = ? AND content != ?", key, failed.content)
        store.catalogue.run(
            """INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (path) DO UPDATE SET size = excluded.size,
               mtime_ns = excluded.mtime_ns, recipe = excluded.recipe, reason = excluded.reason,
               failed_at = excluded.failed_at""",
            key, stamp.size, stamp.mtime_ns, recipe, failed.reason, time.time(),
        )  # fmt: skip


def forget_foreign(store: LibraryStore, job: Job) -> None:
    """A path that was media once and no longer is leaves the library without a complaint."""
    with store.catalogue.transaction():
        store.catalogue.run("DELETE FROM files WHERE path = ?", stored(job.path))
        store.catalogue.run("DELETE FROM failures WHERE path = ?", stored(job.path))


def forget_lost_failures(store: LibraryStore, roots: Iterable[str | os.PathLike[str]]) -> None:
    """Failures of files that are no longer there concern nobody."""
    with store.catalogue.transaction():
        for root in map(settle, roots):
            low, high = inside(root)
            rows = store.catalogue.rows(
                "SELECT path FROM failures WHERE path = ? OR (path >= ? AND path < ?)",
                stored(root),
                low,
                high,
            )
            for (path,) in rows:
                if not exists(shown(path)):
                    store.catalogue.run("DELETE FROM failures WHERE path = ?", path)
