"""The table of jobs. Written outside the writer's lock: a running job holds that lock."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from wordreel.library.store import LibraryStore

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
ENDED = (DONE, FAILED, CANCELLED)
MAX_ENDED = 200  # ended jobs that stay listed

_COLUMNS = "id, kind, title, request, state, progress, report, error, made_at, started_at, ended_at"


@dataclass(frozen=True)
class Job:
    """One job; `request` holds all that is needed to run it, or to run it again."""

    id: int
    kind: str
    title: str
    request: dict[str, Any]
    state: str
    progress: dict[str, Any] | None
    report: dict[str, Any] | None
    error: str | None
    made_at: float
    started_at: float | None
    ended_at: float | None

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def add_job(store: LibraryStore, kind: str, title: str, request: dict[str, Any]) -> Job:
    """Append a job to the queue and delete the oldest ended ones."""
    with store.catalogue.transaction():
        store.catalogue.run(
            "INSERT INTO jobs (kind, title, request, state, made_at) VALUES (?, ?, ?, ?, ?)",
            kind,
            title,
            json.dumps(request),
            QUEUED,
            time.time(),
        )
        (number,) = store.catalogue.rows("SELECT last_insert_rowid()")[0]
        store.catalogue.run(
            "DELETE FROM jobs WHERE ended_at IS NOT NULL AND id NOT IN "
            "(SELECT id FROM jobs WHERE ended_at IS NOT NULL ORDER BY id DESC LIMIT ?)",
            MAX_ENDED,
        )
    job = read_job(store, number)
    assert job is not None  # noqa: S101 - it was just written
    return job


def read_job(store: LibraryStore, number: int) -> Job | None:
    row = store.catalogue.one(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", number)  # noqa: S608
    return _job(row) if row else None


def latest_jobs(store: LibraryStore, limit: int = MAX_ENDED) -> list[Job]:
    """Newest first."""
    rows = store.catalogue.rows(f"SELECT {_COLUMNS} FROM jobs ORDER BY id DESC LIMIT ?", limit)  # noqa: S608
    return [_job(row) for row in rows]


def unfinished_jobs(store: LibraryStore) -> list[Job]:
    """Oldest first."""
    rows = store.catalogue.rows(
        f"SELECT {_COLUMNS} FROM jobs WHERE ended_at IS NULL ORDER BY id"  # noqa: S608
    )
    return [_job(row) for row in rows]


def requeue_running(store: LibraryStore) -> None:
    """Queue the jobs again that a stopped server left running."""
    store.catalogue.run("UPDATE jobs SET state = ? WHERE state = ?", QUEUED, RUNNING)


def start_job(store: LibraryStore, number: int) -> None:
    store.catalogue.run(
        "UPDATE jobs SET state = ?, started_at = ? WHERE id = ?", RUNNING, time.time(), number
    )


def save_progress(store: LibraryStore, number: int, progress: dict[str, Any]) -> None:
    store.catalogue.run("UPDATE jobs SET progress = ? WHERE id = ?", json.dumps(progress), number)


def end_job(
    store: LibraryStore,
    number: int,
    state: str,
    report: dict[str, Any] | None = None,
    error: str | None = None,
) -> None:
    store.catalogue.run(
        "UPDATE jobs SET state = ?, report = ?, error = ?, ended_at = ? WHERE id = ?",
        state,
        None if report is None else json.dumps(report),
        error,
        time.time(),
        number,
    )


def _job(row: tuple[Any, ...]) -> Job:
    number, kind, title, request, state, progress, report, *rest = row
    return Job(number, kind, title, json.loads(request), state, _json(progress), _json(report), *rest)


def _json(text: str | None) -> dict[str, Any] | None:
    value: dict[str, Any] | None = json.loads(text) if text else None
    return value
