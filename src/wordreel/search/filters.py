"""Which videos a search may return."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from wordreel.errors import QueryError
from wordreel.library.records import StoredFile


@dataclass(frozen=True)
class Filters:
    """A folder the file must lie under, and bounds on when the file was last changed."""

    folder: Path | None = None
    after: datetime | None = None
    before: datetime | None = None

    def __post_init__(self) -> None:
        if self.after and self.before and self.after >= self.before:
            raise QueryError(
                f"nothing is after {self.after:%Y-%m-%d} and before {self.before:%Y-%m-%d}; swap the two"
            )

    def paths(self, files: list[StoredFile]) -> dict[str, str]:
        """Content to the first path of it that passes, in the order of paths."""
        root = None if self.folder is None else os.path.realpath(self.folder.expanduser())
        kept: dict[str, str] = {}
        for file in files:
            if root is not None and not _under(file.path, root):
                continue
            changed = file.mtime_ns / 1e9
            if self.after and changed < self.after.timestamp():
                continue
            if self.before and changed >= self.before.timestamp():
                continue
            kept.setdefault(file.content, file.path)
        return kept


def _under(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
