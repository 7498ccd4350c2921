"""Full-text search over spoken and on-screen words, tags and notes (SQLite FTS5)."""

from __future__ import annotations

from collections.abc import Sequence

from wordreel.library.catalogue import Catalogue
from wordreel.library.records import WordRow


def match_expression(terms: Sequence[str]) -> str:
    """An FTS5 query for any of the terms as plain text, whatever characters they contain.

    A term of several words is a phrase.

    >>> match_expression(["dog", 'a "b" OR'])
    '"dog" OR "a ""b"" OR"'
    """
    clean = [t.replace("\x00", " ").encode("utf-8", "replace").decode().replace('"', '""') for t in terms]
    return " OR ".join(f'"{t}"' for t in clean if any(c.isalnum() for c in t))


def search_words(catalogue: Catalogue, terms: Sequence[str], limit: int) -> list[WordRow]:
    """Rows of words, tags and notes that hold any of the terms, best first (bm25, larger is better).

    The expert of a tag is "tag", that of a note "note".
    """
    expression = match_expression(terms)
    if not expression:
        return []
    rows = catalogue.rows(
        """SELECT w.content, w.expert, w.start, w.end, w.text, w.score, -bm25(words_fts) AS rank
            FROM words_fts JOIN words w ON w.id = words_fts.rowid
            WHERE words_fts MATCH ? AND EXISTS (SELECT 1 FROM files f WHERE f.content = w.content)
            ORDER BY rank DESC, w.content, w.start, w.expert LIMIT ?""",
        expression,
        limit,
    )
    noted = catalogue.rows(
        """SELECT a.content, a.kind, a.start, a.end, a.text, 1.0, -bm25(annotations_fts) AS rank
            FROM annotations_fts JOIN annotations a ON a.id = annotations_fts.rowid
            WHERE annotations_fts MATCH ? AND EXISTS (SELECT 1 FROM files f WHERE f.content = a.content)
            ORDER BY rank DESC, a.content, a.start LIMIT ?""",
        expression,
        limit,
    )
    return [WordRow(*row) for row in (*noted, *rows)[:limit]]
