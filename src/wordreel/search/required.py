"""Tags and people that a query requires, as reasons of its hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wordreel.catalogue.file_conditions import MomentRow
from wordreel.catalogue.store import LibraryStore
from wordreel.search.hits import Hit, Reason, Results, within
from wordreel.search.query import Query


def with_required(store: LibraryStore, query: Query, results: Results[Hit]) -> Results[Hit]:
    """The same hits; the people and tags that each had to have (`hits.REQUIRED`) are its first reasons."""
    if query.filters.lasting or not results.hits:
        return results
    names = [("tag", tag) for tag in query.filters.tags] + [("person", name) for name in query.filters.people]
    required = list(zip(names, store.required_moments(query.filters.conditions), strict=True))

    def explained(hit: Hit) -> Hit:
        why = [Reason(expert, 0.0, name, _when(hit, moments)) for (expert, name), moments in required]
        return replace(hit, why=(*within(why, hit.start, hit.end), *hit.why))

    plain = None if results.plain is None else tuple(explained(hit) for hit in results.plain)
    return replace(results, hits=tuple(explained(hit) for hit in results.hits), plain=plain)


def _when(hit: Hit, moments: Sequence[MomentRow]) -> tuple[float, float] | None:
    """The first of the moments that overlaps a hit."""
    times = [
        (one.start, one.end)
        for one in moments
        if one.content == hit.content and one.start < hit.end and one.end > hit.start
    ]
    return min(times, default=None)
