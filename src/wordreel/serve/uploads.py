"""Files that come over the wire: kept under the hash of their bytes, believed only once decoded."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from wordreel.errors import MediaError
from wordreel.library.store import LibraryStore
from wordreel.media.types import MediaInfo
from wordreel.serve.display import safe_name
from wordreel.serve.problems import Problem, problem_of

FOLDER = "uploads"
ASKED = "asked"  # below the cache: what was only asked with
MAX_QUERIES = 50
LOOK_EVERY = 64 * 2**20  # bytes between two looks at the room that is left
SPARE = 2**30  # bytes of disk that are left for others


class Prober(Protocol):
    """What is asked of `wordreel.media.Fence`."""

    def probe(self, path: Path) -> MediaInfo: ...


@dataclass(frozen=True)
class StoredUpload:
    """A file that is media."""

    content: str
    path: Path
    name: str
    size: int
    info: MediaInfo


class Uploads:
    """`<library>/uploads/<sha256>` for what is added, `<library>/cache/asked/<sha256>` for questions."""

    def __init__(self, store: LibraryStore, fence: Prober) -> None:
        self._store, self._fence = store, fence
        self.folder = store.path / FOLDER
        self.asked = store.cache / ASKED

    async def take(self, chunks: AsyncIterator[bytes], name: str, keep: bool) -> StoredUpload:
        """Write the bytes as they come, look into them, and put the file in its place or delete it."""
        home = self.folder if keep else self.asked
        await anyio.to_thread.run_sync(_make, home)
        passing = home / f"passing-{secrets.token_hex(8)}"
        digest, size = hashlib.sha256(), 0
        try:
            handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb", buffering=0) as out:
                async for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    if size // LOOK_EVERY != (size - len(chunk)) // LOOK_EVERY:
                        await anyio.to_thread.run_sync(_check_room, home)
                    await anyio.to_thread.run_sync(_write, out, chunk)
            if size == 0:
                raise Problem(422, "empty", "the upload is empty; send the bytes of a file")
            return await anyio.to_thread.run_sync(
                self._settle, passing, digest.hexdigest(), size, safe_name(name), keep
            )
        finally:
            passing.unlink(missing_ok=True)

    def find(self, content: str) -> Path:
        """An upload by its id; a `Problem` where there is none (any more)."""
        if re.fullmatch("[0-9a-f]{64}", content):
            for home in (self.asked, self.folder):
                if (home / content).is_file():
                    return home / content
        raise Problem(404, "no_upload", "there is no such upload any more; upload the file again", "image")

    def _settle(self, passing: Path, content: str, size: int, name: str, keep: bool) -> StoredUpload:
        try:
            info = self._fence.probe(passing)
        except MediaError as error:
            raise problem_of(error) from error
        place = (self.folder if keep else self.asked) / content
        passing.replace(place)
        if keep:
            self._store.catalogue.run(
                "INSERT OR REPLACE INTO uploads VALUES (?, ?, ?)",
                content,
                name,
                time.time(),
            )
        else:
            self._clear_up()
        return StoredUpload(content, place, name, size, info)

    def forget(self, content: str) -> None:
        """Delete our copy: nobody else has it under this name."""
        (self.folder / content).unlink(missing_ok=True)
        self._store.catalogue.run("DELETE FROM uploads WHERE content = ?", content)

    def sweep(self) -> None:
        """Delete what a killed server left half-written."""
        for home in (self.folder, self.asked):
            for path in home.glob("passing-*"):
                path.unlink(missing_ok=True)

    def _clear_up(self) -> None:
        held = sorted(self.asked.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in held[: max(0, len(held) - MAX_QUERIES)]:
            path.unlink(missing_ok=True)


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _check_room(folder)


def _check_room(folder: Path) -> None:
    if shutil.disk_usage(folder).free < SPARE:
        raise Problem(507, "disk_full", "there is no room for uploads on the server's disk")


def _write(out: object, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[out.write(view) :]  # type: ignore[attr-defined]
