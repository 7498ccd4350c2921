"""Embeddings that cannot be right, found without computing any again."""

from __future__ import annotations

import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embedding_cache, tracks_of
from wordreel.maintain.library_problem import LibraryProblem
from wordreel.models.base import Model
from wordreel.util.degenerate import embeddings_fault
from wordreel.util.even_sample import even_sample

MOST_CHECKED = 20_000  # embeddings, evenly spread over the library
MOST_NAMED = 20  # videos


def degenerate_embeddings(
    store: LibraryStore, model: Model, most: int = MOST_CHECKED
) -> list[tuple[str, LibraryProblem]]:
    """What is wrong with the embeddings of a library: (expert, problem), with the file where it is one's.

    A video of which nothing is embedded although the model could read its tracks is a problem too: what the
    model returned was not finite.
    """
    gallery, columns = embedding_cache(store, model).open()
    live = gallery.live_rows
    rows = live[even_sample(len(live), most)]
    vectors, available = np.asarray(gallery.vectors[rows]), gallery.available[rows]

    def path(row: int) -> str:
        video = store.video(columns.clip(int(row)).content)
        return video.paths[0] if video and video.paths else ""

    found: list[tuple[str, LibraryProblem]] = []
    for number, expert in enumerate(model.experts):
        there = rows[available[:, number]]
        fault, at = embeddings_fault(vectors[available[:, number], number])
        if fault:
            first = f", of {path(int(there[at]))} for one" if at >= 0 else ""
            found.append((expert, _problem(f"of the embeddings of {expert}, {fault}{first}")))
    named = set(model.experts) & set(model.track_experts)
    empty = rows[~available.any(axis=1) & (columns.clips["whole"][rows] != 0)]
    for row in empty[:MOST_NAMED].tolist():
        readable = sorted(named & set(tracks_of(store, model, columns.clip(row).content)))
        if readable:
            what = f"the model {model.name!r} has no usable embedding of {path(row)}"
            found.append((", ".join(readable), _problem(what)))
    return found


def _problem(what: str) -> LibraryProblem:
    return LibraryProblem("embeddings", what, repairable=False)
