"""Folders that a server watches: what is new in them becomes a job."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from wordreel.catalogue.jobs import unfinished_jobs
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import WordreelError
from wordreel.ingest.watch import LOOK_SHARE, POLL_SECONDS, STILL_SECONDS, FolderLooks
from wordreel.serve.display import display_path
from wordreel.serve.jobs.queue import JobQueue
from wordreel.serve.problems import Problem

log = logging.getLogger("wordreel.serve")

SETTING = "serve.watched"  # the folders, as a list in JSON


class WatchedFolders:
    """Looks at the watched folders of a library, in one process of a server, and adds what is new."""

    def __init__(self, store: LibraryStore, jobs: JobQueue, roots: Sequence[Path], scratch: Path) -> None:
        self._store, self._jobs = store, jobs
        self._roots = [os.fspath(root) for root in roots]
        self._scratch = scratch
        self._stop = threading.Event()

    @property
    def folders(self) -> list[str]:
        """The folders; another process of the server may have changed them."""
        return [str(folder) for folder in json.loads(self._store.setting(SETTING) or "[]")]

    def set(self, folder: str, on: bool) -> None:
        """Watch a folder from now on, or no longer; what it holds stays in the library."""
        with self._store.editing():
            folders = {*self.folders, folder} if on else {*self.folders} - {folder}
            self._store.catalogue.run(
                "INSERT OR REPLACE INTO settings VALUES (?, ?)", SETTING, json.dumps(sorted(folders))
            )

    def start(self) -> None:
        """Watch until closed, unless another process of this server does."""
        threading.Thread(target=self._run, name="watched", daemon=True).start()

    def close(self) -> None:
        """Watch no longer."""
        self._stop.set()

    def _run(self) -> None:
        with (self._scratch / "watching").open("w") as held:
            while not self._stop.is_set():
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:  # the process that watches may end before this one
                    self._stop.wait(POLL_SECONDS)
            looks = FolderLooks(self._store.catalogue, [], os.fspath(self._store.path), self._roots)
            while not self._stop.wait(self.look(looks)):
                pass

    def look(self, looks: FolderLooks) -> float:
        """Add what is new; return the seconds until the next look."""
        started = time.monotonic()
        try:
            looks.folders = self.folders
            busy = any(job.kind == "add" for job in unfinished_jobs(self._store))
            if not busy and (still := looks.look()):  # what is being added is not new
                self._add(still, looks)
        except (WordreelError, OSError) as error:
            log.warning("watching folders: %s", error)
        pause = STILL_SECONDS if looks.moving else POLL_SECONDS
        return max(pause, LOOK_SHARE * (time.monotonic() - started))

    def _add(self, paths: Sequence[str], looks: FolderLooks) -> None:
        title = display_path(Path(paths[0]).name) if len(paths) == 1 else f"{len(paths)} new files"
        try:
            self._jobs.put("add", title, {"paths": list(paths), "within": self._roots})
        except Problem:  # too many jobs wait
            looks.forget(paths)
