"""Which clips left the catalogue, in order: whoever reads a million embeddings goes on from the number seen
last instead of comparing a million ids.

The log belongs to the column caches (see `columns`) and is created with the first of them. Triggers keep it
current, whichever version of the program writes; without it, all ids are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.library.catalogue import Catalogue

_TABLES = (
    """CREATE TABLE IF NOT EXISTS removed_clips (
           number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL)""",
    """CREATE TRIGGER IF NOT EXISTS clips_removed AFTER DELETE ON clips BEGIN
           INSERT INTO removed_clips (id) VALUES (old.id);
       END""",
    # A content without a file is deleted soon; until then its clips are not to be found.
    "CREATE TABLE IF NOT EXISTS contents_without_file (content TEXT PRIMARY KEY) WITHOUT ROWID",
    """CREATE TRIGGER IF NOT EXISTS contents_added AFTER INSERT ON contents BEGIN
           INSERT OR IGNORE INTO contents_without_file VALUES (new.content);
       END""",
    """CREATE TRIGGER IF NOT EXISTS contents_removed AFTER DELETE ON contents BEGIN
           DELETE FROM contents_without_file WHERE content = old.content;
       END""",
    """CREATE TRIGGER IF NOT EXISTS files_added AFTER INSERT ON files BEGIN
           DELETE FROM contents_without_file WHERE content = new.content;
       END""",
    """CREATE TRIGGER IF NOT EXISTS files_removed AFTER DELETE ON files BEGIN
           INSERT OR IGNORE INTO contents_without_file
           SELECT old.content WHERE NOT EXISTS (SELECT 1 FROM files WHERE content = old.content);
       END""",
    """CREATE TRIGGER IF NOT EXISTS files_changed AFTER UPDATE OF content ON files BEGIN
           DELETE FROM contents_without_file WHERE content = new.content;
           INSERT OR IGNORE INTO contents_without_file
           SELECT old.content WHERE NOT EXISTS (SELECT 1 FROM files WHERE content = old.content);
       END""",
    """INSERT OR IGNORE INTO contents_without_file
       SELECT content FROM contents c WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.content = c.content)""",
)


@dataclass(frozen=True)
class ClipChanges:
    """What happened to the clips since the log stood at some number."""

    number: int  # where the log stands now
    removed: list[int]  # ids deleted since
    hidden: list[int]  # ids whose content has lost its last file
    newest: int  # the highest id that was ever given


def create_clip_log(catalogue: Catalogue) -> None:
    """Start the log, unless there is one. The caller holds the write lock."""
    if not has_clip_log(catalogue):
        with catalogue.transaction():
            for statement in _TABLES:
                catalogue.run(statement)


def has_clip_log(catalogue: Catalogue) -> bool:
    row = catalogue.one("SELECT count(*) FROM sqlite_master WHERE name IN ('removed_clips', 'files_changed')")
    return row is not None and row[0] == 2  # the first and the last that is created


def changes_since(catalogue: Catalogue, number: int) -> ClipChanges | None:
    """What changed since the log stood at `number`; None where there is no log that reaches back to it."""
    with catalogue.transaction(reading=True):
        if not has_clip_log(catalogue):
            return None
        stands = _first(catalogue, "SELECT coalesce(max(number), 0) FROM removed_clips")
        if number > stands:
            return None
        removed = catalogue.rows("SELECT id FROM removed_clips WHERE number > ?", number)
        hidden = catalogue.rows(
            "SELECT id FROM clips WHERE content IN (SELECT content FROM contents_without_file)"
        )
        newest = _first(catalogue, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'clips'")
    return ClipChanges(stands, [i for (i,) in removed], [i for (i,) in hidden], newest)


def _first(catalogue: Catalogue, sql: str) -> int:
    row = catalogue.one(sql)
    return int(row[0]) if row else 0
