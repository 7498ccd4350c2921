"""Files of the library, handed out only while they are what was added.

A path may have been given to another file since, or to a link that leads out of the folders. Size and
time tell that a file is the one that was seen; where only the time differs (a restored backup), its bytes do.
"""

from __future__ import annotations

import os
from pathlib import Path

from wordreel.errors import MediaError
from wordreel.library.extract import content_hash
from wordreel.library.paths import from_blob, is_imported
from wordreel.library.store import LibraryStore
from wordreel.lru_cache import LRUCache
from wordreel.media.files import OpenFile, open_media
from wordreel.media.types import Limits
from wordreel.serve.problems import Problem

REMEMBERED = 10_000

Stamp = tuple[int, int, int, int]  # inode, size, time of the bytes, time of anything


class VerifiedFiles:
    """Where each content can be read."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._proved = LRUCache[tuple[str, Stamp], str](REMEMBERED)

    def path(self, content: str) -> Path:
        """A path that holds this content; a `Problem` where there is none."""
        found = self._rows(content)
        for raw, size, mtime in found:
            path = from_blob(raw)
            try:
                if self._same(path, os.stat(path), size, mtime, content):  # noqa: PTH116
                    return Path(path)
            except (OSError, ValueError):
                continue
        raise _gone()

    def open(self, content: str) -> OpenFile:
        """The file, held open: what happens to its name from now on does not matter."""
        path = self.path(content)
        try:
            file = open_media(path, Limits())
        except MediaError as error:
            raise Problem(410, "gone", f"the file can no longer be read: {error.message}") from error
        status = os.fstat(file.descriptor)
        try:
            if not any(
                self._same(str(path), status, size, mtime, content) for _, size, mtime in self._rows(content)
            ):
                raise _gone()
        except BaseException:
            file.close()
            raise
        return file

    def _rows(self, content: str) -> list[tuple[bytes, int, int]]:
        found = self._store.catalogue.rows(
            "SELECT path, size, mtime_ns FROM files WHERE content = ? ORDER BY path", content
        )
        if not found:
            raise Problem(404, "not_found", "there is no such video in the library; see /api/videos")
        files = [(raw, size, mtime) for raw, size, mtime in found if not is_imported(from_blob(raw))]
        if not files:
            raise Problem(404, "no_media", "this item was imported as features; there is no file to show")
        return files

    def _same(self, path: str, now: os.stat_result, size: int, mtime: int, content: str) -> bool:
        if now.st_size != size:
            return False
        if now.st_mtime_ns == mtime:
            return True
        key = (path, (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))
        known = self._proved.get(key)
        if known is None:
            known = content_hash(Path(path))
            self._proved.put(key, known)
        return known == content


def _gone() -> Problem:
    return Problem(410, "gone", "the file is away or has changed since it was added; add its folder again")
