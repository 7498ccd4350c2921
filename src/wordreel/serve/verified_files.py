"""Files of the library, handed out only while they are what was added.

A path may belong to another file by now, or to a link: links are served only where they lead into one of the
roots. Size and time tell that a file is the one that was added; where only the time differs (a restored
backup), the hash of its bytes does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from wordreel.errors import MediaError
from wordreel.library.extract import content_hash
from wordreel.library.listing import files_of
from wordreel.library.paths import is_imported
from wordreel.library.records import StoredFile
from wordreel.library.scan import resolves_within
from wordreel.library.store import LibraryStore
from wordreel.lru_cache import LRUCache
from wordreel.media.files import OpenFile, open_media
from wordreel.media.types import Limits
from wordreel.serve.problems import Problem

CACHED_HASHES = 10_000

Stamp = tuple[int, int, int, int]  # inode, size, mtime, ctime


class VerifiedFiles:
    """Finds a file for each content."""

    def __init__(self, store: LibraryStore, roots: Sequence[Path] = ()) -> None:
        self._store, self._roots = store, roots
        self._hashes = LRUCache[tuple[str, Stamp], str](CACHED_HASHES)

    def path(self, content: str) -> Path:
        """A path that holds this content; raises a `Problem` where there is none."""
        for file in self._files(content):
            try:
                if self._same(file, os.stat(file.path)):  # noqa: PTH116
                    return Path(file.path)
            except (OSError, ValueError):
                continue
        raise _gone()

    def open(self, content: str) -> OpenFile:
        """The file, held open: what happens to its name from now on does not matter."""
        path = self.path(content)
        try:
            opened = open_media(path, Limits())
        except MediaError as error:
            raise Problem(410, "gone", f"the file can no longer be read: {error.message}") from error
        status = os.fstat(opened.descriptor)
        try:
            if not any(self._same(file, status) for file in self._files(content) if file.path == str(path)):
                raise _gone()
        except BaseException:
            opened.close()
            raise
        return opened

    def _files(self, content: str) -> list[StoredFile]:
        stored = files_of(self._store, content)
        if not stored:
            raise Problem(404, "not_found", "there is no such video in the library; see /api/videos")
        files = [file for file in stored if not is_imported(file.path)]
        if not files:
            raise Problem(404, "no_media", "this item was imported as features; it has no file")
        return files

    def _same(self, file: StoredFile, now: os.stat_result) -> bool:
        if now.st_size != file.size:
            return False
        if os.path.realpath(file.path) != file.path and not resolves_within(file.path, self._roots):
            return False  # a link that leads out of the folders
        if now.st_mtime_ns == file.mtime_ns:
            return True
        key = (file.path, (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))
        known = self._hashes.get(key)
        if known is None:
            known = content_hash(Path(file.path))
            self._hashes.put(key, known)
        return known == file.content


def _gone() -> Problem:
    return Problem(410, "gone", "the file is gone or has changed since it was added; add its folder again")
