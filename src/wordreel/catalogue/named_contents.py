"""Find the videos of a library by what a file of captions calls them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wordreel.catalogue.records import StoredFile


@dataclass(frozen=True)
class NamedContents:
    """Contents by path, by file name, and by file name without its ending; of equals, the first file's.

    >>> files = [StoredFile("/films/a.mp4", "c1", 1, 0, 0.0), StoredFile("/old/a.mp4", "c2", 1, 0, 0.0)]
    >>> named = NamedContents.of(files)
    >>> named.find("a"), named.find("/old/a.mp4"), named.find("clips/a.mp4"), named.find("b")
    ('c1', 'c2', 'c1', None)
    """

    by_name: Mapping[str, str]

    @classmethod
    def of(cls, files: Iterable[StoredFile]) -> NamedContents:
        """Collect the names of files."""
        by_name: dict[str, str] = {}
        for file in files:
            path = Path(file.path)
            for name in (str(path), path.name, path.stem):
                by_name.setdefault(name, file.content)
        return cls(by_name)

    def find(self, name: str) -> str | None:
        """Return the content of a name; of a path that is elsewhere, the content of its file name."""
        return self.by_name.get(name) or self.by_name.get(Path(name).name)
