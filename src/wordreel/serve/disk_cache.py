"""A cache of small files in a folder, bounded in size."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SPARE = 0.8  # of the bound is left after clearing up


class DiskCache:
    """Bytes by key, least recently used first out. Concurrent calls for one key compute it once."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self._max_bytes = folder, max_bytes
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._bytes: int | None = None

    def get(self, key: str, make: Callable[[], bytes]) -> bytes:
        """The bytes under a key, from the folder or computed now. Errors of `make` are not cached."""
        path = self._path(key)
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        try:
            with turn:
                content = self._read(path)
                if content is None:
                    content = make()
                    self._write(path, content)
        finally:
            with self._lock:
                self._turns.pop(key, None)
        return content

    def _path(self, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / digest[:2] / digest[2:]

    def _read(self, path: Path) -> bytes | None:
        with suppress(OSError):
            content = path.read_bytes()
            os.utime(path)
            return content
        return None

    def _write(self, path: Path, data: bytes) -> None:
        """A full or read-only disk costs speed, not the answer."""
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            passing = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            passing.write_bytes(data)
            passing.replace(path)
            with self._lock:
                self._bytes = (self._bytes if self._bytes is not None else self._measure()) + len(data)
                if self._bytes > self._max_bytes:
                    self._clear_up()

    def _measure(self) -> int:
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def _clear_up(self) -> None:
        held = [
            (path.stat().st_mtime_ns, path.stat().st_size, path)
            for path in self.folder.rglob("*")
            if path.is_file()
        ]
        total = sum(size for _, size, _ in held)
        for _, size, path in sorted(held):
            if total <= SPARE * self._max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size
        self._bytes = total
