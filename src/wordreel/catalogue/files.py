"""The files of a library: which meet some conditions, and lists of them for people who browse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from wordreel.catalogue.paths import from_blob, prefix_bounds, to_blob

if TYPE_CHECKING:
    from wordreel.catalogue.connection import Catalogue
    from wordreel.catalogue.records import FileStamp
    from wordreel.catalogue.store import LibraryStore

FileKind = Literal["video", "audio", "image"]
ListOrder = Literal["added", "date"]

AT_ONCE = 500  # contents in one statement
TAGGED_MOMENTS = "SELECT content, start, end FROM annotations WHERE kind = 'tag' AND key = ?"
SEEN_MOMENTS = (
    "SELECT s.content, s.start, s.end FROM person_faces s JOIN people p ON p.id = s.person WHERE p.key = ?"
)

SqlCondition = tuple[str, tuple[Any, ...]]
"""A clause about a row `f` of `files`, and its values."""


def under_folder(folder: str) -> SqlCondition:
    """Below a folder, by its real path, or that file itself."""
    values = (to_blob(folder), *prefix_bounds(folder))
    return "(f.path = ? OR (f.path >= ? AND f.path < ?))", values


def about_content(clause: str) -> Callable[[Any], SqlCondition]:
    """Return a clause about a column of `contents`."""
    return lambda value: (f"f.content IN (SELECT content FROM contents WHERE {clause})", (value,))  # noqa: S608


def has_words(expert: str) -> Callable[[bool], SqlCondition]:
    """Return whether an expert heard or read words."""
    clause = "EXISTS (SELECT 1 FROM words w WHERE w.content = f.content AND w.expert = ?)"
    return lambda wanted: (clause if wanted else f"NOT {clause}", (expert,))


@dataclass(frozen=True)
class MomentRow:
    """Seconds of a content."""

    content: str
    start: float
    end: float


@dataclass(frozen=True)
class FileConditions:
    """What a file and its content must be."""

    where: tuple[SqlCondition, ...] = ()
    moments: tuple[tuple[str, str], ...] = ()  # SQL of the moments that have a value, and the value

    @property
    def empty(self) -> bool:
        """Return whether every file passes."""
        return not self.where and not self.moments


@dataclass(frozen=True)
class FileRecord:
    """The first path of a content and its date, its kind and duration, and the last pass that it has had."""

    path: str
    kind: FileKind
    duration: float
    captured: str
    analysis: Literal["quick", "thorough"]


def passing_contents(catalogue: Catalogue, conditions: FileConditions) -> list[str]:
    """Return the contents with a file that meets the conditions, in order of the hash."""
    where, values = _where(conditions)
    query = f"SELECT DISTINCT f.content FROM files f {where} ORDER BY f.content"  # noqa: S608
    return [content for (content,) in catalogue.rows(query, *values)]


def required_moments(catalogue: Catalogue, conditions: FileConditions) -> list[list[MomentRow]]:
    """Return the moments that have each of the required values."""
    return [[MomentRow(*row) for row in catalogue.rows(query, value)] for query, value in conditions.moments]


def first_files(
    catalogue: Catalogue, conditions: FileConditions, contents: Sequence[str] | None = None
) -> dict[str, FileRecord]:
    """Return the first file, in order of paths, of each of these contents (or of all) that passes."""
    records: dict[str, FileRecord] = {}
    for start in range(0, 1 if contents is None else len(contents), AT_ONCE):
        clause, values = _where(conditions, None if contents is None else contents[start : start + AT_ONCE])
        rows = catalogue.rows(
            f"""SELECT f.content, min(f.path), c.kind, c.duration, f.captured,
                       CASE WHEN q.content IS NULL THEN 'thorough' ELSE 'quick' END
                FROM files f JOIN contents c ON c.content = f.content
                LEFT JOIN quick_contents q ON q.content = f.content
                {clause} GROUP BY f.content ORDER BY 2""",  # noqa: S608
            *values,
        )
        records |= {content: FileRecord(from_blob(path), *rest) for content, path, *rest in rows}
    return records


def _where(conditions: FileConditions, contents: Sequence[str] | None = None) -> tuple[str, list[Any]]:
    clauses = list(conditions.where)
    for moments, value in conditions.moments:
        clauses.append((f"f.content IN (SELECT content FROM ({moments}))", (value,)))  # noqa: S608
    if contents is not None:
        clauses.append((f"f.content IN ({','.join('?' * len(contents))})", tuple(contents)))
    text = " AND ".join(clause for clause, _ in clauses)
    return (f"WHERE {text}" if text else ""), [value for _, values in clauses for value in values]


@dataclass(frozen=True)
class ListedVideo:
    """One content under the first of its paths."""

    content: str
    path: str
    kind: str
    duration: float
    added_at: float
    captured: str
    captured_from: str
    analysis: Literal["quick", "thorough"]


def list_videos(store: LibraryStore, sort: ListOrder = "added") -> list[ListedVideo]:
    """List every content that has a file: the last added first, or the last recorded."""
    order = "since" if sort == "added" else "captured"
    rows = store.catalogue.rows(
        f"""SELECT f.content, min(f.path), c.kind, c.duration,
                  (SELECT min(copy.added_at) FROM files copy WHERE copy.content = f.content) AS since,
                  f.captured, f.captured_from, CASE WHEN q.content IS NULL THEN 'thorough' ELSE 'quick' END
           FROM files f JOIN contents c ON c.content = f.content
           LEFT JOIN quick_contents q ON q.content = f.content
           GROUP BY f.content ORDER BY {order} DESC, f.content"""  # noqa: S608
    )
    return [ListedVideo(content, from_blob(path), *rest) for content, path, *rest in rows]


def count_videos(store: LibraryStore) -> tuple[int, float]:
    """Count the contents that have a file, and their seconds."""
    row = store.catalogue.one(
        "SELECT count(*), coalesce(sum(duration), 0) FROM contents c "
        "WHERE EXISTS (SELECT 1 FROM files f WHERE f.content = c.content)"
    )
    return (int(row[0]), float(row[1])) if row else (0, 0.0)


def files_of(store: LibraryStore, content: str) -> list[tuple[str, FileStamp]]:
    """Return the path and stamp of every file that had this content when it was added, by path."""
    from wordreel.catalogue.records import FileStamp  # loads NumPy, which filters do not need

    rows = store.catalogue.rows(
        "SELECT path, size, mtime_ns, ctime_ns, inode FROM files WHERE content = ? ORDER BY path", content
    )
    return [(from_blob(path), FileStamp(*stamp)) for path, *stamp in rows]
