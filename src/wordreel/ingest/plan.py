"""Which files an `add` has to process, by their stamps and what the catalogue knows of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.passes import is_quick, quick_contents
from wordreel.catalogue.paths import absent_folder, may_exist, to_blob
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.remove import files_below
from wordreel.ingest.add_report import AddReport
from wordreel.ingest.file_processor import expert_set_id, missing_experts
from wordreel.ingest.scan import IgnoredFile, ScannedFile, scan
from wordreel.ingest.tasks import AddOptions, AddTask

CLOCK_TICK_NS = 50_000_000  # file times tick this coarsely at worst


@dataclass(frozen=True)
class AddPlanner:
    """Lists the files to process and counts the others in `report`; reads only folders and first bytes."""

    catalogue: Catalogue
    fingerprints: Mapping[str, str]
    options: AddOptions
    report: AddReport

    def plan(self, roots: Sequence[str], skip: str) -> list[AddTask]:
        """Return the files at or below `roots`, canonical paths, that are to be processed."""
        tasks: list[AddTask] = []
        seen: set[str] = set()
        for item in scan(roots, skip=skip, within=self.options.within):
            seen.add(item.path)
            if isinstance(item, IgnoredFile):
                self.report.ignored += 1
            elif isinstance(item, ScannedFile):
                task = self._task(item)
                if task is not None:
                    tasks.append(task)
            else:
                self.report.failed.append((item.path, item.reason))
        self.report.gone = _gone(self.catalogue, roots, seen)
        if self.options.only_waiting:
            waiting = quick_contents(self.catalogue)
            tasks = [task for task in tasks if task.last_content in waiting]
        return tasks if sum(task.stamp.size for task in tasks) >= self.options.least_bytes else []

    def _task(self, item: ScannedFile) -> AddTask | None:
        """Return the task for one file; None if it is up to date or failed before in the same way."""
        now = time.time_ns()
        stamp, key = item.stamp, to_blob(item.path)
        failed = self.catalogue.one("SELECT size, mtime_ns, recipe, reason FROM failures WHERE path = ?", key)
        same = failed and not self.options.retry_failed and failed[:2] == (stamp.size, stamp.mtime_ns)
        # Whatever failed, the quick pass leaves it to the thorough one.
        if failed and same and (self.options.quick or failed[2] == expert_set_id(self.fingerprints)):
            self.report.still_failed.append((item.path, failed[3]))
            return None
        row = self.catalogue.one(
            "SELECT size, mtime_ns, ctime_ns, inode, checked_ns, content FROM files WHERE path = ?", key
        )
        content = None
        last_content = row[5] if row and FileStamp(*row[:4]) == stamp else None
        if row and last_content and max(stamp.mtime_ns, stamp.ctime_ns) + CLOCK_TICK_NS < row[4]:
            content = last_content
            if self._up_to_date(content):
                self.report.skipped += 1
                return None
        return AddTask(item.path, stamp, item.expected, now, content, last_content)

    def _up_to_date(self, content: str) -> bool:
        if self.options.quick:
            return True
        missing = missing_experts(self.catalogue, content, self.fingerprints)
        return not missing and not is_quick(self.catalogue, content)


def _gone(catalogue: Catalogue, roots: Sequence[str], seen: set[str]) -> list[str]:
    """Known files at or below `roots`, canonical paths, that are no longer in their folders."""
    unseen = [path for path in files_below(catalogue, roots) if path not in seen]
    return [path for path in unseen if not may_exist(path) and absent_folder(path) is None]
