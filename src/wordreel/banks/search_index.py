"""Build the index that a library of its size is searched with, and measure its recall.

Queries are words and items are video, so recall is measured on words (the queries of the largest bank, or
everyday ones) and on look-alikes apart.
"""

from __future__ import annotations

import numpy as np

from wordreel.catalogue.banks import list_banks, read_bank
from wordreel.catalogue.connection import disk_error
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embedding_cache
from wordreel.embed.embedding_cache import Gallery
from wordreel.index.base import QuerySample
from wordreel.index.cached import BuiltIndex, builder_for
from wordreel.index.exact import ExactIndex
from wordreel.models.base import Model, mixture_weights
from wordreel.progress import ProgressCallback
from wordreel.search.snapshot import index_cache
from wordreel.util.even_sample import even_sample

MEASURED = 64  # queries, at most


def index_is_stale(store: LibraryStore, model: Model) -> bool:
    """Return whether the library needs a new index.

    It does if it is large enough for an index with files, and has none that holds most of it.
    """
    gallery = embedding_cache(store, model).raw()
    builder = builder_for(gallery.vectors)
    return builder is not None and index_cache(store, model, gallery).stale(builder, len(gallery))


def build_index(
    store: LibraryStore, model: Model, on_progress: ProgressCallback | None = None
) -> BuiltIndex | None:
    """Build the index if the library is large enough for one and has none that holds most of it."""
    gallery, _ = embedding_cache(store, model).open()
    builder = builder_for(gallery.vectors)
    cache = index_cache(store, model, gallery)
    if builder is None or not cache.stale(builder, len(gallery)):
        return None
    from wordreel.index.cached import MeasuredRecall, measure_recall

    with store.writing():
        try:
            built = cache.build(builder, gallery.vectors, gallery.available, on_progress)
        except OSError as error:
            raise disk_error(cache.folder, error) from error
        index = cache.open(builder, gallery.vectors, gallery.available)
        if index is not None and not index.exact:
            exact = ExactIndex(gallery.vectors, gallery.available)
            recall: dict[str, MeasuredRecall] = {
                "text": measure_recall(index, exact, text_sample(store, model), gallery.live),
                "look-alike": measure_recall(index, exact, look_alikes(model, gallery), gallery.live),
            }
            cache.state_recall(built, recall)
    return cache.read(builder.name)


def text_sample(store: LibraryStore, model: Model) -> QuerySample:
    """Return queries of the largest bank; everyday ones where there is none."""
    from wordreel.banks.sources import everyday_queries

    if sample := bank_sample(store, model):
        return sample
    texts = everyday_queries()
    queries = model.encode([texts[number] for number in even_sample(len(texts), MEASURED).tolist()])
    return QuerySample(np.stack([q.vectors for q in queries]), np.stack([q.weights for q in queries]))


def bank_sample(store: LibraryStore, model: Model, most: int = MEASURED) -> QuerySample | None:
    """Return at most so many queries of the largest bank; None where there is no bank."""
    from wordreel.banks.query_embeddings import embed_queries

    banks = list_banks(store)
    if not banks:
        return None
    bank = read_bank(store, max(banks, key=lambda row: (row.size, row.name)).name)
    embedded = embed_queries(store, model, bank)
    return _spread(QuerySample(embedded.vectors, embedded.weights), most)


def look_alikes(model: Model, gallery: Gallery) -> QuerySample:
    """Return items as queries for what is like them."""
    live = gallery.live_rows
    rows = live[even_sample(len(live), MEASURED)]
    weights = gallery.available[rows] * mixture_weights(model)
    return QuerySample(np.asarray(gallery.vectors[rows]), weights.astype(np.float32))


def _spread(queries: QuerySample, most: int) -> QuerySample:
    """At most so many queries, evenly spread over all."""
    some = even_sample(len(queries.vectors), most)
    return QuerySample(queries.vectors[some], queries.weights[some])
