"""`Filters`: which videos a search may return. A new filter is one field here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TypedDict, get_args

from wordreel.catalogue.files import (
    SEEN_MOMENTS,
    TAGGED_MOMENTS,
    FileConditions,
    FileKind,
    SqlCondition,
    about_content,
    has_words,
    under_folder,
)
from wordreel.catalogue.paths import is_imported
from wordreel.errors import QueryError
from wordreel.search.query_fields import asked, query_field

LONGEST = 1e7  # seconds of a file


def _since(day: datetime) -> SqlCondition:
    return "f.captured >= ?", (_local_text(day),)


def _until(day: datetime) -> SqlCondition:
    return "f.captured < ? AND f.captured > ''", (_local_text(day),)  # imported items have no date


def _local_text(day: datetime) -> str:
    """Return a time as the dates of files are stored: midnight without a time, as files with a day alone."""
    local = (day.astimezone() if day.tzinfo else day).replace(tzinfo=None)
    return local.isoformat(timespec="seconds").removesuffix("T00:00:00")


@dataclass(frozen=True)
class Filters:
    """Conditions that every returned file meets; None leaves one out.

    Args:
        folder: Under this folder (or this file itself).
        after: Recorded at or after, by the clock where it was recorded.
        before: Recorded before.
        min_duration: At least so many seconds long.
        max_duration: At most so many seconds long.
        has_speech: Whether speech was recognised in it.
        has_text: Whether on-screen text was recognised in it.
        expert: This expert has features for the video.
        kind: "video", "audio" or "image".
        tags: Only moments with each of these tags.
        people: Only moments in which each of these people, by name, is seen.

    Raises:
        QueryError: No file can meet the conditions.

    >>> Filters(folder="~/Videos/2024", kind="video").kind
    'video'
    """

    folder: str | PathLike[str] | None = asked(
        None, "folder", "Only files under this folder.", where=lambda folder: under_folder(_real_path(folder))
    )
    after: datetime | None = asked(None, "day", "Only files recorded on or after this day.", where=_since)
    before: datetime | None = asked(None, "day", "Only files recorded before this day.", where=_until)
    min_duration: float | None = asked(
        None, "number", "Only files at least this many seconds long.",
        at_least=0, served_at_most=LONGEST, where=about_content("duration >= ?"),
    )  # fmt: skip
    max_duration: float | None = asked(
        None, "number", "Only files at most this many seconds long.",
        at_least=0, served_at_most=LONGEST, where=about_content("duration <= ?"),
    )  # fmt: skip
    has_speech: bool | None = asked(
        None, "flag", "Only files with, or without, speech.", where=has_words("speech")
    )
    has_text: bool | None = asked(
        None, "flag", "Only files with, or without, on-screen text.", where=has_words("ocr")
    )
    expert: str | None = asked(
        None, "name", "Only files that this expert has features of.",
        where=lambda expert: (
            "f.content IN (SELECT content FROM tracks WHERE expert = ? AND state = 'present')", (expert,)
        ),
    )  # fmt: skip
    kind: FileKind | None = asked(
        None,
        "choice",
        "Only files of this kind.",
        choices=get_args(FileKind),
        where=about_content("kind = ?"),
    )
    tags: Sequence[str] = asked(
        (), "name", "Only moments with this tag; repeat it for several.",
        flag="--tag", several=True, moments=TAGGED_MOMENTS,
    )  # fmt: skip
    people: Sequence[str] = asked(
        (), "name", "Only moments in which this person is seen.",
        flag="--person", several=True, moments=SEEN_MOMENTS,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name in ("tags", "people"):
            given = getattr(self, name) or ()
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        if self.after and self.before and self.after >= self.before:
            raise QueryError(
                f"nothing is after {self.after:%Y-%m-%d} and before {self.before:%Y-%m-%d}; swap the two",
            )
        low, high = self.min_duration, self.max_duration
        if low is not None and high is not None and low > high:
            raise QueryError(
                f"nothing lasts at least {low:g} and at most {high:g} seconds; swap the two",
            )

    @property
    def conditions(self) -> FileConditions:
        """The same for the catalogue."""
        from wordreel.catalogue.annotations import compared

        where: list[SqlCondition] = []
        moments: list[tuple[str, str]] = []
        for one in fields(self):
            about, given = query_field(one), getattr(self, one.name)
            if about.where is not None and given is not None:
                where.append(about.where(given))
            elif about.moments:
                moments += [(about.moments, compared(value)) for value in given]
        return FileConditions(tuple(where), tuple(moments))

    @property
    def lasting(self) -> bool:
        """Whether the answer stays the same while the videos do; people tag and name at any time."""
        return not self.tags and not self.people


class FilterArguments(TypedDict, total=False):
    """The fields of `Filters` as keyword arguments."""

    folder: str | PathLike[str] | None
    after: datetime | None
    before: datetime | None
    min_duration: float | None
    max_duration: float | None
    has_speech: bool | None
    has_text: bool | None
    expert: str | None
    kind: FileKind | None
    tags: Sequence[str]
    people: Sequence[str]


def _real_path(folder: str | PathLike[str]) -> str:
    """Return the one spelling of a folder; of imported items, the dataset they came from."""
    if is_imported(str(folder)):
        return str(folder)
    try:
        return os.path.realpath(Path(folder).expanduser())
    except (ValueError, RuntimeError) as error:  # a zero byte, or somebody's home folder that there is not
        raise QueryError(f"{str(folder)!r:.200} is not a folder: {error}", field="folder") from None
