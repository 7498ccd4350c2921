"""The formats in which a list of hits can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import QueryError
from wordreel.search.hit_lists.csv_table import csv_table
from wordreel.search.hit_lists.edl import edl
from wordreel.search.hit_lists.m3u import m3u
from wordreel.search.hit_lists.moments import ListedMoment, moments_of
from wordreel.search.hit_lists.otio import otio
from wordreel.search.hits import Hit


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
    """A list of hits in one of `FORMATS`.

    Raises:
        QueryError: There is no such format, or it cannot hold so many hits.
    """
    if form not in FORMATS:
        raise QueryError(f"there is no format {form!r}; there are: {', '.join(FORMATS)}", field="format")
    return FORMATS[form].write(moments_of(store, hits))
