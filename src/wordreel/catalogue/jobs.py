"""The tables of a server: jobs, and the names of uploaded files, which lie under the hash of their bytes.

They are written without the writer's lock: a running job holds that.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from wordreel.catalogue.store import LibraryStore

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
ENDED = (DONE, FAILED, CANCELLED)
THOROUGH = "thorough"  # the kind of jobs that give way to all others
MAX_ENDED = 200  # ended jobs that stay listed
CLAIM_SECONDS = 15.0  # after which a claim that was not renewed is void

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
        """Return whether the job has ended."""
        return self.state in ENDED


def add_job(store: LibraryStore, kind: str, title: str, request: dict[str, Any]) -> Job:
    """Append a job to the queue and delete the oldest ended ones."""
    with store.catalogue.transaction():
        ((number,),) = store.catalogue.rows(
            "INSERT INTO jobs (kind, title, request, state, made_at) VALUES (?, ?, ?, ?, ?) RETURNING id",
            kind, title, json.dumps(request), QUEUED, time.time(),
        )  # fmt: skip
        store.catalogue.run(
            "DELETE FROM jobs WHERE ended_at IS NOT NULL AND id NOT IN "
            "(SELECT id FROM jobs WHERE ended_at IS NOT NULL ORDER BY id DESC LIMIT ?)",
            MAX_ENDED,
        )
        return _jobs(store, "WHERE id = ?", number)[0]


def read_job(store: LibraryStore, number: int) -> Job | None:
    """Return a job by its number."""
    return next(iter(_jobs(store, "WHERE id = ?", number)), None)


def latest_jobs(store: LibraryStore, limit: int = MAX_ENDED) -> list[Job]:
    """Return the newest jobs, the newest first."""
    return _jobs(store, "ORDER BY id DESC LIMIT ?", limit)


def unfinished_jobs(store: LibraryStore) -> list[Job]:
    """Return the jobs that have not ended, the oldest first."""
    return _jobs(store, "WHERE ended_at IS NULL ORDER BY id")


def last_ended_job(store: LibraryStore) -> int | None:
    """Return the id of the job that ended last."""
    row = store.catalogue.one("SELECT id FROM jobs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 1")
    return row[0] if row else None


def claim_job(store: LibraryStore, server: str) -> Job | None:
    """Start the oldest job that nobody runs; None where there is none or another server runs one.

    Thorough passes come last: they take hours, and everything can be found without them.
    One transaction, so that two servers never start the same job, nor two jobs at once.
    """
    with store.catalogue.transaction():
        if job_of_another_server(store, server) is not None:
            return None
        jobs = _jobs(store, "WHERE ended_at IS NULL ORDER BY kind = ?, id LIMIT 1", THOROUGH)
        if not jobs:
            return None
        now = time.time()
        store.catalogue.run(
            "UPDATE jobs SET state = ?, started_at = ?, claimed_by = ?, renewed_at = ? WHERE id = ?",
            RUNNING, now, server, now, jobs[0].id,
        )  # fmt: skip
    return jobs[0]


def job_of_another_server(store: LibraryStore, server: str) -> int | None:
    """Return the id of a job that another server is running now."""
    query = "SELECT id FROM jobs WHERE state = ? AND claimed_by != ? AND renewed_at > ?"
    row = store.catalogue.one(query, RUNNING, server, time.time() - CLAIM_SECONDS)
    return row[0] if row else None


def renew_claim(store: LibraryStore, number: int, server: str) -> bool:
    """Keep a running job; False where it is to stop: cancelled elsewhere, or claimed by another server."""
    store.catalogue.run(
        "UPDATE jobs SET renewed_at = ? WHERE id = ? AND claimed_by = ?", time.time(), number, server
    )
    query = "SELECT 1 FROM jobs WHERE id = ? AND claimed_by = ? AND NOT cancel_requested"
    return store.catalogue.one(query, number, server) is not None


def is_claimed_by(store: LibraryStore, number: int, server: str) -> bool:
    """Return whether a server has claimed a job."""
    return (
        store.catalogue.one("SELECT 1 FROM jobs WHERE id = ? AND claimed_by = ?", number, server) is not None
    )


def release_job(store: LibraryStore, number: int, server: str) -> None:
    """Queue a running job again, for the next server."""
    statement = (
        "UPDATE jobs SET state = ?, claimed_by = NULL, renewed_at = NULL WHERE id = ? AND claimed_by = ?"
    )
    store.catalogue.run(statement, QUEUED, number, server)


def cancel_job(store: LibraryStore, number: int) -> None:
    """End a job that nobody runs; ask the server that runs it to stop."""
    with store.catalogue.transaction():
        store.catalogue.run("UPDATE jobs SET cancel_requested = 1 WHERE id = ? AND ended_at IS NULL", number)
        store.catalogue.run(
            "UPDATE jobs SET state = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL "
            "AND (state = ? OR coalesce(renewed_at, 0) < ?)",
            CANCELLED,
            time.time(),
            number,
            QUEUED,
            time.time() - CLAIM_SECONDS,
        )


def save_progress(store: LibraryStore, number: int, progress: dict[str, Any]) -> None:
    """Save how far a job is."""
    store.catalogue.run("UPDATE jobs SET progress = ? WHERE id = ?", json.dumps(progress), number)


def end_job(
    store: LibraryStore,
    number: int,
    state: str,
    report: dict[str, Any] | None = None,
    error: str | None = None,
) -> None:
    """Record how a job ended."""
    store.catalogue.run(
        "UPDATE jobs SET state = ?, report = ?, error = ?, ended_at = ? WHERE id = ?",
        state,
        None if report is None else json.dumps(report),
        error,
        time.time(),
        number,
    )


def _jobs(store: LibraryStore, clause: str, *values: Any) -> list[Job]:
    jobs = []
    for row in store.catalogue.rows(f"SELECT {_COLUMNS} FROM jobs {clause}", *values):  # noqa: S608
        number, kind, title, request, state, progress, report, *rest = row
        parsed: list[Any] = [json.loads(text) if text else None for text in (request, progress, report)]
        jobs.append(Job(number, kind, title, parsed[0], state, parsed[1], parsed[2], *rest))
    return jobs


def save_upload_name(store: LibraryStore, content: str, name: str) -> None:
    """Remember what an upload is called."""
    store.catalogue.run("INSERT OR REPLACE INTO uploads VALUES (?, ?, ?)", content, name, time.time())


def delete_upload_name(store: LibraryStore, content: str) -> None:
    """Forget what an upload is called."""
    store.catalogue.run("DELETE FROM uploads WHERE content = ?", content)


def upload_names(store: LibraryStore) -> dict[str, str]:
    """Return what every upload is called, by the hash of its bytes."""
    return dict(store.catalogue.rows("SELECT content, name FROM uploads"))
