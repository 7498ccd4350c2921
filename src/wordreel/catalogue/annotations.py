"""Tags and notes on moments. They belong to a content and a span of seconds, so new clips do not touch them.

Written outside the writer's lock, as jobs are: a running add must not keep anybody from tagging.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wordreel.catalogue.store import REPLICA, LibraryStore
from wordreel.errors import LibraryError, LibraryReadOnly, NextStep, QueryError

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
    """What tags and names are compared by: case, width and composition of characters do not count.

    >>> compared("  Straße  am Meer ") == compared("STRASSE AM MEER")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def check_tag(text: str) -> str:
    """A tag without the spaces around and between its words."""
    tag = " ".join(text.split())
    if not tag or not compared(tag):
        raise QueryError("the tag is empty", field="text")
    if len(tag) > LONGEST_TAG:
        raise QueryError(f"a tag has at most {LONGEST_TAG} characters, not {len(tag)}", field="text")
    if not tag.isprintable() or '"' in tag:
        raise QueryError("a tag has no quotes, line breaks or invisible characters", field="text")
    return tag


def check_note(text: str) -> str:
    """A note without the blank space around it."""
    note = text.strip()
    if not note:
        raise QueryError("the note is empty", field="text")
    if len(note) > LONGEST_NOTE:
        raise QueryError(f"a note has at most {LONGEST_NOTE} characters, not {len(note)}", field="text")
    if any(not c.isprintable() and c not in "\n\t" for c in note):
        raise QueryError("a note has no invisible characters but line breaks", field="text")
    return note


def refuse_read_only(store: LibraryStore) -> None:
    """Refuse changes of a library that cannot be written, or that follows another."""
    if store.read_only:
        raise LibraryReadOnly(
            f"{store.path} cannot be written", NextStep("copy the library to a disk that can be written")
        )
    if store.setting(REPLICA) is not None:
        step = NextStep("change the library that it follows")
        raise LibraryReadOnly(f"{store.path} is a replica of a published library", step)


def add_annotation(
    store: LibraryStore,
    content: str,
    kind: Kind,
    text: str,
    start: float | None = None,
    end: float | None = None,
) -> Annotation:
    """Tag or annotate a moment, or all of a video. What is there already is returned as it is.

    Raises:
        QueryError: The text or the moment cannot be used.
        LibraryError: The video is not in the library.
    """
    clean = check_tag(text) if kind == "tag" else check_note(text)
    refuse_read_only(store)
    catalogue = store.catalogue
    with catalogue.transaction():
        first, last = _span(store, content, start, end)
        known = catalogue.one(
            f"""SELECT {_COLUMNS} FROM annotations a
                WHERE content = ? AND kind = ? AND key = ? AND start = ? AND end = ?""",  # noqa: S608
            content, kind, compared(clean), first, last,
        )  # fmt: skip
        if known is not None:
            return Annotation(*known)
        row = catalogue.one("SELECT count(*) FROM annotations WHERE content = ?", content)
        if row and row[0] >= MOST_OF_A_VIDEO:
            raise QueryError(f"a video has at most {MOST_OF_A_VIDEO} tags and notes", field="text")
        now = time.time()
        made = catalogue.one(
            """INSERT INTO annotations (content, start, end, kind, text, key, made_at)
               VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id""",
            content, first, last, kind, clean, compared(clean), now,
        )  # fmt: skip
    assert made is not None  # noqa: S101 - an INSERT returns its row or raises
    return Annotation(int(made[0]), content, first, last, kind, clean, now)


def _span(store: LibraryStore, content: str, start: float | None, end: float | None) -> tuple[float, float]:
    row = store.catalogue.one(
        """SELECT duration FROM contents c WHERE content = ?
           AND EXISTS (SELECT 1 FROM files f WHERE f.content = c.content)""",
        content,
    )
    if row is None:
        raise LibraryError("there is no such video in the library", NextStep("add it", "add FILE", "Library"))
    duration = float(row[0])
    first = 0.0 if start is None else start
    last = duration if end is None else end
    if not (math.isfinite(first) and math.isfinite(last)) or first < 0 or (last <= first and duration > 0):
        raise QueryError(f"a moment begins before it ends, not at {first:g} and {last:g} s", field="end")
    if first >= duration > 0:
        raise QueryError(f"the video has {duration:g} seconds; none is at {first:g}", field="start")
    return float(first), float(min(last, duration))


def change_annotation(store: LibraryStore, number: int, text: str) -> Annotation:
    """Give a tag or a note another text; the same one on the same moment becomes this one."""
    refuse_read_only(store)
    with store.catalogue.transaction():
        known = read_annotation(store, number)
        clean = check_tag(text) if known.kind == "tag" else check_note(text)
        store.catalogue.run(
            """DELETE FROM annotations WHERE content = ? AND kind = ? AND key = ? AND start = ? AND end = ?
               AND id != ?""",
            known.content, known.kind, compared(clean), known.start, known.end, number,
        )  # fmt: skip
        store.catalogue.run(
            "UPDATE annotations SET text = ?, key = ? WHERE id = ?", clean, compared(clean), number
        )
        return read_annotation(store, number)


def remove_annotation(store: LibraryStore, number: int) -> Annotation:
    """Remove one tag or note; returns it."""
    refuse_read_only(store)
    with store.catalogue.transaction():
        known = read_annotation(store, number)
        store.catalogue.run("DELETE FROM annotations WHERE id = ?", number)
    return known


def read_annotation(store: LibraryStore, number: int) -> Annotation:
    row = store.catalogue.one(f"SELECT {_COLUMNS} FROM annotations a WHERE id = ?", number)  # noqa: S608
    if row is None:
        raise LibraryError(f"there is no tag or note with the number {number}")
    return Annotation(*row)


def list_annotations(
    store: LibraryStore, content: str | None = None, kind: Kind | None = None, tag: str | None = None
) -> list[Annotation]:
    """Tags and notes, of one content, kind or tag if given, in order of time."""
    rows = store.catalogue.rows(
        f"""SELECT {_COLUMNS} FROM annotations a
            WHERE (? IS NULL OR content = ?) AND (? IS NULL OR kind = ?)
              AND (? IS NULL OR kind = 'tag' AND key = ?)
            ORDER BY content, start, end, kind DESC, key""",  # noqa: S608
        content, content, kind, kind, tag, None if tag is None else compared(tag),
    )  # fmt: skip
    return [Annotation(*row) for row in rows]


def tag_counts(store: LibraryStore) -> list[TagCount]:
    """Every tag, the most used first."""
    rows = store.catalogue.rows(
        """SELECT text, count(*), count(DISTINCT content), min(id) FROM annotations WHERE kind = 'tag'
           GROUP BY key ORDER BY 2 DESC, key"""
    )
    return [TagCount(tag, moments, videos) for tag, moments, videos, _ in rows]


def export_annotations(store: LibraryStore) -> list[dict[str, Any]]:
    """All tags and notes as JSON values, also of removed videos.

    A content is named by its hash; the path is for people, and empty for a removed video.
    """
    paths = {video.content: video.paths[0] for video in store.videos()}
    kept = store.catalogue.rows(
        """SELECT 0, content, start, end, kind, text, made_at FROM kept_annotations
           ORDER BY content, start, end, kind DESC, key"""
    )
    return [
        {
            "content": one.content,
            "path": paths.get(one.content, "").encode("utf-8", "backslashreplace").decode(),
            "start": one.start,
            "end": one.end,
            one.kind: one.text,
        }
        for one in [*list_annotations(store), *(Annotation(*row) for row in kept)]
    ]


def import_annotations(store: LibraryStore, rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Add exported tags and notes; returns how many are new, and how many are of videos not here.

    All or nothing: one that cannot be used is an error that says which.
    """
    refuse_read_only(store)
    new = missing = 0
    with store.catalogue.transaction():
        for number, row in enumerate(rows, start=1):
            try:
                kind: Kind = "tag" if "tag" in row else "note"
                content, text = str(row["content"]), str(row[kind])
                start, end = float(row["start"]), float(row["end"])
            except (KeyError, TypeError, ValueError) as error:
                raise QueryError(f"entry {number} is no tag or note: {error!r}") from None
            check_tag(text) if kind == "tag" else check_note(text)
            if store.info(content) is None:
                missing += 1
                continue
            before = len(list_annotations(store, content))
            add_annotation(store, content, kind, text, start, end)
            new += len(list_annotations(store, content)) - before
    return new, missing
