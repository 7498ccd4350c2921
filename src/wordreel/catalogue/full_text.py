"""Full-text search over spoken and on-screen words, tags and notes (SQLite FTS5)."""

from __future__ import annotations

from collections.abc import Sequence

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.records import MatchedLines, WordRow


def match_expression(terms: Sequence[str]) -> str:
    """Return an FTS5 query for any of the terms as plain text, whatever characters they contain.

    A term of several words is a phrase.

    >>> match_expression(["dog", 'a "b" OR'])
    '"dog" OR "a ""b"" OR"'
    """
    clean = [t.replace("\x00", " ").encode("utf-8", "replace").decode().replace('"', '""') for t in terms]
    return " OR ".join(f'"{t}"' for t in clean if any(c.isalnum() for c in t))


def find_lines(catalogue: Catalogue, terms: Sequence[str], limit: int) -> MatchedLines:
    """Lines of words, tags and notes that hold any of the terms, the newest first, at most so many of each.

    Not ranked, and without their text: reading that of ten thousand lines takes longer than finding them.
    """
    expression = match_expression(terms)
    if not expression:
        return MatchedLines()
    noted = catalogue.rows(
        """SELECT -a.id, a.content, a.start, a.end
            FROM annotations_fts JOIN annotations a ON a.id = annotations_fts.rowid
            WHERE annotations_fts MATCH ? ORDER BY annotations_fts.rowid DESC LIMIT ?""",
        expression,
        limit,
    )
    said = catalogue.rows(
        """SELECT w.id, w.content, w.start, w.end
            FROM words_fts JOIN words w ON w.id = words_fts.rowid
            WHERE words_fts MATCH ? ORDER BY words_fts.rowid DESC LIMIT ?""",
        expression,
        limit,
    )
    return MatchedLines(*zip(*noted, *said, strict=True))


def read_lines(catalogue: Catalogue, ids: Sequence[int]) -> dict[int, WordRow]:
    """Return the lines with these ids that there are, in order: tags and notes, then words.

    The expert of a tag is "tag", that of a note "note".
    """
    found: dict[int, WordRow] = {}
    for sign, table, columns in (
        (-1, "annotations", "content, kind, start, end, text, 1.0"),
        (1, "words", "content, expert, start, end, text, score"),
    ):
        some = [abs(line) for line in ids if line * sign > 0]
        rows = catalogue.rows_in(f"SELECT id, {columns} FROM {table} WHERE id IN ? ORDER BY id", some)  # noqa: S608
        found |= {sign * line: WordRow(*row) for line, *row in rows}
    return found
