"""`Library.annotations`: tags and notes on moments.

They belong to a content and a span of seconds, so new clips do not touch them. They are written without the
writer's lock, as jobs are: a running add must not keep anybody from tagging.
"""

from __future__ import annotations

import builtins
import math
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, NextStep, QueryError

Kind = Literal["tag", "note"]

LONGEST_TAG = 100  # characters
LONGEST_NOTE = 10_000
MOST_OF_A_VIDEO = 1_000
_COLUMNS = "a.id, a.content, a.start, a.end, a.kind, a.text, a.made_at"


@dataclass(frozen=True)
class Annotation:
    """A tag or a note on the seconds from `start` to `end` of a content."""

    id: int
    content: str
    start: float
    end: float
    kind: Kind
    text: str
    made_at: float


@dataclass(frozen=True)
class TagCount:
    """A tag, as it was first spelled, and how many moments and videos have it."""

    tag: str
    moments: int
    videos: int


def compared(text: str) -> str:
    """Return what tags and names are compared by: without case, width and composition of characters.

    >>> compared("  Straße  am Meer ") == compared("STRASSE AM MEER")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _check_text(kind: Kind, text: str) -> str:
    """Return the text as it is stored; refuse one that cannot be used."""
    if kind == "note":
        return _check_note(text)
    tag = " ".join(text.split())
    if not tag or not compared(tag):
        raise QueryError("the tag is empty", field="text")
    if len(tag) > LONGEST_TAG:
        raise QueryError(f"a tag has at most {LONGEST_TAG} characters, not {len(tag)}", field="text")
    if not tag.isprintable() or '"' in tag:
        raise QueryError("a tag has no quotes, line breaks or invisible characters", field="text")
    return tag


def _check_note(text: str) -> str:
    note = text.strip()
    if not note:
        raise QueryError("the note is empty", field="text")
    if len(note) > LONGEST_NOTE:
        raise QueryError(f"a note has at most {LONGEST_NOTE} characters, not {len(note)}", field="text")
    if any(not c.isprintable() and c not in "\n\t" for c in note):
        raise QueryError("a note has no invisible characters but line breaks", field="text")
    return note


class AnnotationManager:
    """Tags and notes on moments of a library's videos.

    They stay where they are when a video is analysed again, and come back when a removed one is added again.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store, self._catalogue = store, store.catalogue

    def tag(
        self, video: str | PathLike[str], tag: str, start: float | None = None, end: float | None = None
    ) -> Annotation:
        """Tag a moment of a file, from `start` to `end` seconds, or all of it.

        Raises:
            QueryError: The tag or the moment cannot be used.
            LibraryError: The file is not in the library.
        """
        return self.add(self._store.required_file(video).content, "tag", tag, start, end)

    def note(
        self, video: str | PathLike[str], text: str, start: float | None = None, end: float | None = None
    ) -> Annotation:
        """Write a note on a moment of a file, or on all of it. Searches find its words.

        Raises:
            QueryError: The text or the moment cannot be used.
            LibraryError: The file is not in the library.
        """
        return self.add(self._store.required_file(video).content, "note", text, start, end)

    def add(
        self, content: str, kind: Kind, text: str, start: float | None = None, end: float | None = None
    ) -> Annotation:
        """Tag or annotate a moment of a content, as `tag` and `note` do; return one that exists as it is."""
        clean = _check_text(kind, text)
        with self._store.editing():
            first, last = self._span(content, start, end)
            known = self._catalogue.one(
                f"""SELECT {_COLUMNS} FROM annotations a
                    WHERE content = ? AND kind = ? AND key = ? AND start = ? AND end = ?""",  # noqa: S608
                content, kind, compared(clean), first, last,
            )  # fmt: skip
            if known is not None:
                return Annotation(*known)
            row = self._catalogue.one("SELECT count(*) FROM annotations WHERE content = ?", content)
            if row and row[0] >= MOST_OF_A_VIDEO:
                raise QueryError(f"a video has at most {MOST_OF_A_VIDEO} tags and notes", field="text")
            now = time.time()
            made = self._catalogue.one(
                """INSERT INTO annotations (content, start, end, kind, text, key, made_at)
                   VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id""",
                content, first, last, kind, clean, compared(clean), now,
            )  # fmt: skip
        assert made is not None  # noqa: S101 - an INSERT returns its row or raises
        return Annotation(int(made[0]), content, first, last, kind, clean, now)

    def list(
        self, video: str | PathLike[str] | None = None, tag: str | None = None
    ) -> builtins.list[Annotation]:
        """Return tags and notes of one file or of all, or the moments with one tag."""
        return self.of_content(None if video is None else self._store.required_file(video).content, tag)

    def of_content(self, content: str | None = None, tag: str | None = None) -> builtins.list[Annotation]:
        """Return tags and notes of one content or tag if given, in order of time."""
        rows = self._catalogue.rows(
            f"""SELECT {_COLUMNS} FROM annotations a
                WHERE (? IS NULL OR content = ?) AND (? IS NULL OR kind = 'tag' AND key = ?)
                ORDER BY content, start, end, kind DESC, key""",  # noqa: S608
            content, content, tag, None if tag is None else compared(tag),
        )  # fmt: skip
        return [Annotation(*row) for row in rows]

    def tags(self) -> Sequence[TagCount]:
        """Return every tag with the number of its moments, the most used first."""
        rows = self._catalogue.rows(
            """SELECT text, count(*), count(DISTINCT content), min(id) FROM annotations WHERE kind = 'tag'
               GROUP BY key ORDER BY 2 DESC, key"""
        )
        return [TagCount(tag, moments, videos) for tag, moments, videos, _ in rows]

    def change(self, number: int, text: str) -> Annotation:
        """Give a tag or a note another text; it replaces the same one on the same moment."""
        with self._store.editing():
            before = self._read(number)
            clean = _check_text(before.kind, text)
            self._catalogue.run(
                """DELETE FROM annotations
                   WHERE content = ? AND kind = ? AND key = ? AND start = ? AND end = ? AND id != ?""",
                before.content, before.kind, compared(clean), before.start, before.end, number,
            )  # fmt: skip
            self._catalogue.run(
                "UPDATE annotations SET text = ?, key = ? WHERE id = ?", clean, compared(clean), number
            )
            return self._read(number)

    def remove(self, number: int) -> Annotation:
        """Remove a tag or a note by its number; return it."""
        with self._store.editing():
            removed = self._read(number)
            self._catalogue.run("DELETE FROM annotations WHERE id = ?", number)
        return removed

    def export(self) -> Sequence[dict[str, Any]]:
        """Return all tags and notes as JSON values, also those of removed videos.

        A content is named by its hash; the path is for people, and empty for a removed video.
        """
        paths = {video.content: video.paths[0] for video in self._store.videos()}
        kept = self._catalogue.rows(
            """SELECT 0, content, start, end, kind, text, made_at FROM kept_annotations
               ORDER BY content, start, end, kind DESC, key"""
        )
        return [
            {
                "content": row.content,
                "path": paths.get(row.content, "").encode("utf-8", "backslashreplace").decode(),
                "start": row.start,
                "end": row.end,
                row.kind: row.text,
            }
            for row in [*self.of_content(), *(Annotation(*row) for row in kept)]
        ]

    def import_(self, rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
        """Add exported tags and notes, all or none of them.

        Returns:
            How many are new, and how many were left out because their video is not in the library.

        Raises:
            QueryError: One of them is none.
        """
        new = missing = 0
        with self._store.editing():
            for number, row in enumerate(rows, start=1):
                try:
                    kind: Kind = "tag" if "tag" in row else "note"
                    content, text = str(row["content"]), str(row[kind])
                    start, end = float(row["start"]), float(row["end"])
                except (KeyError, TypeError, ValueError) as error:
                    raise QueryError(f"entry {number} is no tag or note: {error!r}") from None
                _check_text(kind, text)
                if self._store.info(content) is None:
                    missing += 1
                    continue
                before = len(self.of_content(content))
                self.add(content, kind, text, start, end)
                new += len(self.of_content(content)) - before
        return new, missing

    def _read(self, number: int) -> Annotation:
        row = self._catalogue.one(f"SELECT {_COLUMNS} FROM annotations a WHERE id = ?", number)  # noqa: S608
        if row is None:
            raise LibraryError(f"there is no tag or note with the number {number}")
        return Annotation(*row)

    def _span(self, content: str, start: float | None, end: float | None) -> tuple[float, float]:
        row = self._catalogue.one(
            """SELECT duration FROM contents c WHERE content = ?
               AND EXISTS (SELECT 1 FROM files f WHERE f.content = c.content)""",
            content,
        )
        if row is None:
            step = NextStep("add it", "add FILE", "Library")
            raise LibraryError("there is no such video in the library", step)
        duration = float(row[0])
        first = 0.0 if start is None else start
        last = duration if end is None else end
        if (
            not (math.isfinite(first) and math.isfinite(last))
            or first < 0
            or (last <= first and duration > 0)
        ):
            message = f"a moment begins before it ends, not at {first:g} and {last:g} s"
            raise QueryError(message, field="end")
        if first >= duration > 0:
            raise QueryError(f"the video has {duration:g} seconds; none is at {first:g}", field="start")
        return float(first), float(min(last, duration))
