"""Captions of the items of a library, by dataset and split."""

from __future__ import annotations

from collections.abc import Iterable

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.records import CaptionRow

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
    """Whether exactly these captions are there already."""
    have = catalogue.rows(
        """SELECT text, start, end FROM captions
           WHERE content = ? AND dataset = ? AND split = ? ORDER BY id""",
        content, dataset, split,
    )  # fmt: skip
    return have == [(clean(text), start, end) for text, start, end in lines]


def clean(text: str) -> str:
    """Text that SQLite can store: valid Unicode without NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
