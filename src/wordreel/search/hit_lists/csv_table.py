"""Hits as a table (RFC 4180), safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from wordreel.search.hit_lists.moments import ListedMoment
from wordreel.util.printable import printable_text

COLUMNS = ("rank", "name", "path", "start", "end", "confidence", "score", "reason", "kind", "content")
FORMULA = ("=", "+", "-", "@", "|", "%")


def csv_table(moments: Sequence[ListedMoment]) -> str:
    """One row for each moment; times in seconds, confidences between 0 and 1."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for moment in moments:
        sure = "" if moment.confidence is None else f"{moment.confidence:.4f}"
        rows.writerow(
            (
                moment.rank,
                cell(moment.name),
                cell(printable_text(moment.path)),
                f"{moment.start:.3f}",
                f"{moment.end:.3f}",
                sure,
                f"{moment.score:.6f}",
                cell(moment.reason),
                moment.kind,
                moment.content,
            )
        )
    return out.getvalue()


def cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> cell("=1+1"), cell("a=b")
    ("'=1+1", 'a=b')
    """
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
