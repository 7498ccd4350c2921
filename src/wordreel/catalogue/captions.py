"""Captions of the items of a library, by dataset and split, and the items by what captions call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.records import CaptionRow, StoredFile

Line = tuple[str, float | None, float | None]  # text, start, end


def read_captions(
    catalogue: Catalogue, split: str | None = None, dataset: str | None = None, content: str | None = None
) -> list[CaptionRow]:
    """Return the captions of one split, dataset or item (or of all), in order, of items still there."""
    rows = catalogue.rows(
        """SELECT content, text, start, end, split, dataset FROM captions c
           WHERE (? IS NULL OR split = ?) AND (? IS NULL OR dataset = ?) AND (? IS NULL OR content = ?)
             AND EXISTS (SELECT 1 FROM files f WHERE f.content = c.content) ORDER BY id""",
        split, split, dataset, dataset, content, content,
    )  # fmt: skip
    return [CaptionRow(*row) for row in rows]


def put_captions(catalogue: Catalogue, content: str, dataset: str, split: str, lines: Iterable[Line]) -> int:
    """Replace the captions of an item in a split; returns how many there are."""
    rows = [(content, dataset, split, clean(text), start, end) for text, start, end in lines]
    with catalogue.transaction():
        catalogue.run(
            "DELETE FROM captions WHERE content = ? AND dataset = ? AND split = ?", content, dataset, split
        )
        catalogue.run_many(
            "INSERT INTO captions (content, dataset, split, text, start, end) VALUES (?, ?, ?, ?, ?, ?)", rows
        )
    return len(rows)


def same_captions(
    catalogue: Catalogue, content: str, dataset: str, split: str, lines: Iterable[Line]
) -> bool:
    """Return whether exactly these captions are there already."""
    have = catalogue.rows(
        """SELECT text, start, end FROM captions
           WHERE content = ? AND dataset = ? AND split = ? ORDER BY id""",
        content, dataset, split,
    )  # fmt: skip
    return have == [(clean(text), start, end) for text, start, end in lines]


def clean(text: str) -> str:
    """Return text that SQLite can store: valid Unicode without NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


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
