"""Full-text search over spoken and on-screen words (SQLite FTS5)."""

from __future__ import annotations

from collections.abc import Sequence

from wordreel.library.catalogue import Catalogue
from wordreel.library.records import WordRow


def match_expression(terms: Sequence[str], mode: str = "any", prefix: bool = False) -> str:
    """An FTS5 query for the terms as plain text, whatever characters they contain.

    A term of several words is a phrase.

    >>> match_expression(["dog", 'a "b" OR'])
    '"dog" OR "a ""b"" OR"'
    """
    if mode not in ("any", "all"):
        raise ValueError(f"mode is 'any' or 'all', not {mode!r}")
    clean = [t.replace("\x00", " ").encode("utf-8", "replace").decode().replace('"', '""') for t in terms]
    quoted = [f'"{t}"{"*" if prefix else ""}' for t in clean if any(c.isalnum() for c in t)]
    return (" OR " if mode == "any" else " AND ").join(quoted)


def search_words(
    catalogue: Catalogue,
    terms: Sequence[str],
    mode: str = "any",
    experts: Sequence[str] | None = None,
    prefix: bool = False,
    limit: int = 1000,
) -> list[WordRow]:
    """Rows of words that hold any (or all) of the terms, best first (bm25, larger is better)."""
    expression = match_expression(terms, mode, prefix)
    if not expression:
        return []
    chosen = "" if experts is None else f"AND w.expert IN ({','.join('?' * len(experts))})"
    rows = catalogue.rows(
        f"""SELECT w.content, w.expert, w.start, w.end, w.text, w.score, -bm25(words_fts) AS rank
            FROM words_fts JOIN words w ON w.id = words_fts.rowid
            WHERE words_fts MATCH ? {chosen} AND EXISTS (SELECT 1 FROM files f WHERE f.content = w.content)
            ORDER BY rank DESC, w.content, w.start, w.expert LIMIT ?""",  # noqa: S608 - only "?" is put in
        expression,
        *(experts or ()),
        limit,
    )
    return [WordRow(*row) for row in rows]
