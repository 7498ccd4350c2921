"""What hits say of their files: read from the catalogue once, and again after somebody has written to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from wordreel.util.lru_cache import LRUCache

if TYPE_CHECKING:
    from wordreel.catalogue.file_conditions import FileConditions
    from wordreel.catalogue.passes import Pass
    from wordreel.catalogue.store import LibraryStore
    from wordreel.search.filters import FileKind

CACHED = 4_096  # records, of some 500 bytes


@dataclass(frozen=True)
class FileRecord:
    """The first path of a content, its kind and duration, and the last pass that it has had."""

    path: str
    kind: FileKind
    duration: float
    analysis: Pass


class FileRecords:
    """The records of files that meet some conditions. Threads share it."""

    def __init__(self, store: LibraryStore, conditions: FileConditions) -> None:
        self._store, self._conditions = store, conditions
        self._cached: tuple[tuple[int, int], LRUCache[str, FileRecord]] | None = None

    def of(self, contents: Sequence[str]) -> dict[str, FileRecord]:
        """By content; nothing of those without such a file."""
        version = self._store.version()
        if self._cached is None or self._cached[0] != version:
            self._cached = version, LRUCache(CACHED)
        cache = self._cached[1]
        known = cache.get_many(contents)
        new = [content for content, record in known.items() if record is None]
        if new:
            for content, record in self._read(new).items():
                known[content] = record
                cache.put(content, record)
        return {content: record for content, record in known.items() if record is not None}

    def _read(self, contents: Sequence[str]) -> dict[str, FileRecord]:
        paths = self._store.first_paths(self._conditions, contents)
        known = self._store.infos_and_analyses(list(paths))
        return {
            content: FileRecord(paths[content], cast("FileKind", info.kind), info.duration, analysis)
            for content, (info, analysis) in known.items()
        }
