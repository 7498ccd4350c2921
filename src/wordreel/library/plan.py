"""What is to be done with each file, decided from names and stamps alone."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from wordreel.library.catalogue import Catalogue
from wordreel.library.paths import exists, inside, settle, shown, stored
from wordreel.library.progress import AddReport
from wordreel.library.scan import Found, Ignored, Stamp, scan

RACE = 50_000_000  # ns; file times tick this coarsely at worst


@dataclass(frozen=True)
class Job:
    """A file to look into. `content` is given if the file is unchanged and only experts are missing."""

    path: str
    stamp: Stamp
    expected: bool
    checked_ns: int
    content: str | None = None


@dataclass
class Plan:
    jobs: list[Job] = field(default_factory=list)
    bytes: int = 0


def recipe(fingerprints: dict[str, str]) -> str:
    """Names a set of experts: a file that failed is tried again when the experts change."""
    return hashlib.sha256(repr(sorted(fingerprints.items())).encode()).hexdigest()[:16]


def plan(
    catalogue: Catalogue,
    paths: Sequence[str | os.PathLike[str]],
    fingerprints: dict[str, str],
    library: str,
    retry_failed: bool,
    report: AddReport,
) -> Plan:
    """List the jobs, counting in `report` what needs none. Nothing is read but folders and first bytes."""
    made = Plan()
    seen: set[str] = set()
    for item in scan(paths, skip=library):
        seen.add(item.path)
        if isinstance(item, Ignored):
            report.ignored += 1
        elif isinstance(item, Found):
            _consider(catalogue, item, fingerprints, retry_failed, report, made)
        else:
            report.failed.append((item.path, item.reason))
    report.gone = _gone(catalogue, paths, seen)
    return made


def _consider(
    catalogue: Catalogue,
    item: Found,
    fingerprints: dict[str, str],
    retry: bool,
    report: AddReport,
    made: Plan,
) -> None:
    now = time.time_ns()
    stamp, key = item.stamp, stored(item.path)
    failed = catalogue.one("SELECT size, mtime_ns, recipe, reason FROM failures WHERE path = ?", key)
    if failed and not retry and failed[:3] == (stamp.size, stamp.mtime_ns, recipe(fingerprints)):
        report.still_failed.append((item.path, failed[3]))
        return
    row = catalogue.one(
        "SELECT size, mtime_ns, ctime_ns, inode, checked_ns, content FROM files WHERE path = ?", key
    )
    content = None
    if row and Stamp(*row[:4]) == stamp and max(stamp.mtime_ns, stamp.ctime_ns) + RACE < row[4]:
        content = row[5]
        if not missing(catalogue, content, fingerprints):
            report.skipped += 1
            return
    made.jobs.append(Job(item.path, stamp, item.expected, now, content))
    made.bytes += stamp.size


def missing(catalogue: Catalogue, content: str, fingerprints: dict[str, str]) -> list[str]:
    """Experts whose track of a content is not there or was made by another version of them."""
    have: dict[str, str] = dict(
        catalogue.rows("SELECT expert, fingerprint FROM tracks WHERE content = ?", content)
    )
    return [name for name, fingerprint in fingerprints.items() if have.get(name) != fingerprint]


def _gone(catalogue: Catalogue, paths: Sequence[str | os.PathLike[str]], seen: set[str]) -> list[str]:
    """Known files at or below the named paths that are no longer there."""
    found: set[str] = set()
    for root in map(settle, paths):
        low, high = inside(root)
        rows = catalogue.rows(
            "SELECT path FROM files WHERE path = ? OR (path >= ? AND path < ?)", stored(root), low, high
        )
        found.update(shown(path) for (path,) in rows)
    return sorted((p for p in found - seen if not exists(p)), key=stored)
