"""Uploaded files: stored under the hash of their bytes once they have been probed as media."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio

from wordreel.catalogue.jobs import delete_upload_name, save_upload_name
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import MediaError
from wordreel.media.types import MediaInfo
from wordreel.serve.display import safe_name
from wordreel.serve.problems import Problem, problem_of, read_only, too_large
from wordreel.serve.scratch import MEMORY

FOLDER = "uploads"
QUERIES = "asked"  # below the cache: uploads that are only queries
PASSING = "passing-"  # how files start that are being written
ABANDONED_AFTER = 3600.0  # seconds without a write
MAX_QUERIES = 50
MAX_MEMORY_QUERIES, MAX_MEMORY_BYTES = 8, 64 * 2**20  # of a read-only server; bytes of each
CHECK_EVERY = 64 * 2**20  # bytes between two checks of the free disk space
SPARE = 2**30  # bytes of disk space that stay free


class Prober(Protocol):
    """The part of `wordreel.media.Fence` that uploads need."""

    def probe(self, path: Path) -> MediaInfo:
        """Return what a file is; raise where it is no media."""
        ...


@dataclass(frozen=True)
class StoredUpload:
    """An upload that is media."""

    content: str
    path: Path
    name: str
    size: int
    info: MediaInfo


class Uploads:
    """`<library>/uploads/<sha256>` for files to add, `<library>/cache/asked/<sha256>` for queries."""

    def __init__(self, store: LibraryStore, fence: Prober, scratch: Path | None = None) -> None:
        """Take the folder for queries from a read-only server, which writes nothing to the library."""
        self._store, self._fence, self._read_only = store, fence, scratch is not None
        self.folder = store.path / FOLDER
        self.queries = (scratch or store.cache) / QUERIES
        self._max_queries = MAX_MEMORY_QUERIES if self._read_only else MAX_QUERIES

    async def take(self, chunks: AsyncIterator[bytes], name: str, add: bool) -> StoredUpload:
        """Write the bytes as they arrive, probe them, and store the file or delete it."""
        home = self.folder if add else self.queries
        if self._read_only and (add or not MEMORY.is_dir()):
            raise read_only()
        await anyio.to_thread.run_sync(_make_folder, home)
        passing = home / f"{PASSING}{secrets.token_hex(8)}"
        digest, size = hashlib.sha256(), 0
        try:
            async with await anyio.open_file(passing, "xb") as out:
                async for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    if self._read_only and size > MAX_MEMORY_BYTES:
                        raise too_large(MAX_MEMORY_BYTES)
                    if size // CHECK_EVERY != (size - len(chunk)) // CHECK_EVERY:
                        await anyio.to_thread.run_sync(_check_free_space, home)
                    await out.write(chunk)
            if size == 0:
                raise Problem(422, "empty", "the upload is empty; send the bytes of a file")
            return await anyio.to_thread.run_sync(
                self._store_probed, passing, digest.hexdigest(), size, safe_name(name), add
            )
        finally:
            passing.unlink(missing_ok=True)

    def find(self, content: str) -> Path:
        """Return an upload by its id; raise a `Problem` where there is none (any more)."""
        if re.fullmatch("[0-9a-f]{64}", content):
            for home in (self.queries, self.folder):
                if (home / content).is_file():
                    return home / content
        raise Problem(404, "no_upload", "there is no such upload any more; upload the file again", "image")

    def _store_probed(self, passing: Path, content: str, size: int, name: str, add: bool) -> StoredUpload:
        try:
            info = self._fence.probe(passing)
        except MediaError as error:
            raise problem_of(error) from error
        stored = (self.folder if add else self.queries) / content
        passing.replace(stored)
        if add:
            save_upload_name(self._store, content, name)
        else:
            self._clear_up()
        return StoredUpload(content, stored, name, size, info)

    def delete(self, content: str) -> None:
        """Delete the stored copy and its name."""
        (self.folder / content).unlink(missing_ok=True)
        delete_upload_name(self._store, content)

    def sweep(self) -> None:
        """Delete what a killed server left half written."""
        for home in (self.folder, self.queries):
            for path in home.glob(f"{PASSING}*"):
                with suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > ABANDONED_AFTER:  # another server may be writing
                        path.unlink()

    def _clear_up(self) -> None:
        """Delete the oldest queries of too many; never what other requests are still writing."""
        stored: list[tuple[int, Path]] = []
        for path in self.queries.iterdir():
            if not path.name.startswith(PASSING):
                with suppress(FileNotFoundError):  # another request cleared it up
                    stored.append((path.stat().st_mtime_ns, path))
        for _, path in sorted(stored)[: max(0, len(stored) - self._max_queries)]:
            path.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _check_free_space(folder)


def _check_free_space(folder: Path) -> None:
    spare = MAX_MEMORY_BYTES if folder.is_relative_to(MEMORY) else SPARE
    if shutil.disk_usage(folder).free < spare:
        raise Problem(507, "disk_full", "the server's disk has no space left for uploads")
