"""Lists of hits for other programs: tables (RFC 4180), playlists, edit decision lists and timelines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import QueryError
from wordreel.search.edit_lists import ListedMoment, edl, moments_of, otio
from wordreel.search.hits import Hit
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
    """Return a text that no spreadsheet takes for a formula.

    >>> cell("=1+1"), cell("a=b")
    ("'=1+1", 'a=b')
    """
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def m3u(moments: Sequence[ListedMoment]) -> str:
    """Return the playlist as UTF-8 text; files are URLs, so that no name can break a line."""
    lines = ["#EXTM3U"]
    for moment in moments:
        title = f"{moment.name} ({moment.comment})" if moment.comment else moment.name
        lines.append(f"#EXTINF:{moment.end - moment.start:.0f},{title}")
        if moment.kind != "image":
            lines.append(f"#EXTVLCOPT:start-time={moment.start:.3f}")
            lines.append(f"#EXTVLCOPT:stop-time={moment.end:.3f}")
        lines.append(moment.address)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class ListFormat:
    """How moments are written, the ending of such a file, and its media type."""

    write: Callable[[Sequence[ListedMoment]], str]
    ending: str
    media_type: str


FORMATS = {
    "csv": ListFormat(csv_table, ".csv", "text/csv; charset=utf-8"),
    "edl": ListFormat(edl, ".edl", "text/plain; charset=utf-8"),
    "otio": ListFormat(otio, ".otio", "application/json"),
    "m3u": ListFormat(m3u, ".m3u8", "audio/x-mpegurl; charset=utf-8"),
}


def write_hits(store: LibraryStore, hits: Iterable[Hit], form: str) -> str:
    """Return a list of hits in one of `FORMATS`.

    Raises:
        QueryError: There is no such format, or it cannot hold so many hits.
    """
    if form not in FORMATS:
        raise QueryError(f"there is no format {form!r}; there are: {', '.join(FORMATS)}", field="format")
    return FORMATS[form].write(moments_of(store, hits))
