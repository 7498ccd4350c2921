"""Conditions on files and what they hold, answered by the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.paths import from_blob, prefix_bounds, to_blob

AT_ONCE = 500  # contents in one statement
_TAGGED = "SELECT a.content, a.start, a.end FROM annotations a WHERE a.kind = 'tag' AND a.key = ?"
_SEEN = (
    "SELECT s.content, s.start, s.end FROM person_faces s JOIN people p ON p.id = s.person WHERE p.key = ?"
)
_WITH_WORDS = "EXISTS (SELECT 1 FROM words w WHERE w.content = f.content AND w.expert = ?)"


@dataclass(frozen=True)
class MomentRow:
    """Seconds of a content."""

    content: str
    start: float
    end: float


@dataclass(frozen=True)
class FileConditions:
    """What a file and its content must be; None leaves a condition out."""

    folder: str | None = None  # real path of a folder that it lies under, or of itself
    after: float | None = None  # seconds; last modified at or after
    before: float | None = None  # last modified before
    min_duration: float | None = None
    max_duration: float | None = None
    has_speech: bool | None = None
    has_text: bool | None = None
    expert: str | None = None  # has a track of it
    kind: str | None = None
    tags: tuple[str, ...] = ()  # as they are compared; each on some moment of it
    people: tuple[str, ...] = ()  # their names, as they are compared; each seen in it

    @property
    def empty(self) -> bool:
        return all(value in (None, ()) for value in astuple(self))


def passing_contents(catalogue: Catalogue, conditions: FileConditions) -> list[str]:
    """Contents with a file that meets the conditions, in order of the hash."""
    where, values = _where(conditions)
    query = f"SELECT DISTINCT f.content FROM files f {where} ORDER BY f.content"  # noqa: S608
    return [content for (content,) in catalogue.rows(query, *values)]


def required_moments(catalogue: Catalogue, conditions: FileConditions) -> list[list[MomentRow]]:
    """For each tag and each person that is required, the moments that have it."""
    asked = [(_TAGGED, tag) for tag in conditions.tags] + [(_SEEN, name) for name in conditions.people]
    return [[MomentRow(*row) for row in catalogue.rows(query, value)] for query, value in asked]


def first_paths(
    catalogue: Catalogue, conditions: FileConditions, contents: Sequence[str] | None = None
) -> dict[str, str]:
    """The first path, in order of paths, of each of these contents (or of all) that meets the conditions."""
    where, values = _where(conditions)
    paths: dict[str, str] = {}
    for limit, some in _pieces(contents):
        clause = where if not limit else f"{where} AND {limit}" if where else f"WHERE {limit}"
        query = f"SELECT f.content, min(f.path) FROM files f {clause} GROUP BY f.content ORDER BY 2"  # noqa: S608
        rows = catalogue.rows(query, *values, *some)
        paths |= {content: from_blob(path) for content, path in rows}
    return paths


def _pieces(contents: Sequence[str] | None) -> Iterator[tuple[str, Sequence[str]]]:
    if contents is None:
        yield "", ()
        return
    for start in range(0, len(contents), AT_ONCE):
        some = contents[start : start + AT_ONCE]
        yield f"f.content IN ({','.join('?' * len(some))})", some


def _where(conditions: FileConditions) -> tuple[str, list[Any]]:
    clauses: list[str] = []
    values: list[Any] = []

    def add(clause: str, *some: Any) -> None:
        clauses.append(clause)
        values.extend(some)

    if conditions.folder is not None:
        bounds = prefix_bounds(conditions.folder)
        add("(f.path = ? OR (f.path >= ? AND f.path < ?))", to_blob(conditions.folder), *bounds)
    if conditions.after is not None:
        add("f.mtime_ns / 1e9 >= ?", conditions.after)
    if conditions.before is not None:
        add("f.mtime_ns / 1e9 < ?", conditions.before)
    about: tuple[tuple[str, Any], ...] = (
        ("duration >= ?", conditions.min_duration),
        ("duration <= ?", conditions.max_duration),
        ("kind = ?", conditions.kind),
    )
    for clause, value in about:
        if value is not None:
            add(f"EXISTS (SELECT 1 FROM contents c WHERE c.content = f.content AND c.{clause})", value)  # noqa: S608
    for wanted, expert in ((conditions.has_speech, "speech"), (conditions.has_text, "ocr")):
        if wanted is not None:
            add(_WITH_WORDS if wanted else f"NOT {_WITH_WORDS}", expert)
    for tag in conditions.tags:
        add(f"EXISTS ({_TAGGED} AND a.content = f.content)", tag)
    for person in conditions.people:
        add(f"EXISTS ({_SEEN} AND s.content = f.content)", person)
    if conditions.expert is not None:
        add(
            "EXISTS (SELECT 1 FROM tracks t WHERE t.content = f.content AND t.expert = ? "
            "AND t.state = 'present')",
            conditions.expert,
        )
    return (f"WHERE {' AND '.join(clauses)}" if clauses else ""), values
