"""Which clips left the catalogue, in order.

Whoever reads a million embeddings goes on from the number seen last instead of comparing a million ids.

Triggers keep the log current (`migrations/008_clip_log.sql`), whoever writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.catalogue.connection import Catalogue


@dataclass(frozen=True)
class ClipChanges:
    """What happened to the clips since the log stood at some number."""

    number: int  # where the log stands now
    removed: list[int]  # ids deleted since
    hidden: list[int]  # ids whose content has lost its last file
    newest: int  # the highest id that was ever given


def changes_since(catalogue: Catalogue, number: int) -> ClipChanges:
    """Return what changed since the log stood at `number`."""
    with catalogue.transaction(reading=True):
        stands = _first(catalogue, "SELECT coalesce(max(number), 0) FROM removed_clips")
        removed = catalogue.rows("SELECT id FROM removed_clips WHERE number > ?", number)
        hidden = catalogue.rows(
            "SELECT id FROM clips WHERE content IN (SELECT content FROM contents_without_file)"
        )
        newest = _first(catalogue, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'clips'")
    return ClipChanges(stands, [i for (i,) in removed], [i for (i,) in hidden], newest)


def _first(catalogue: Catalogue, sql: str) -> int:
    row = catalogue.one(sql)
    return int(row[0]) if row else 0
