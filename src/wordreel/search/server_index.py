"""Which server searches a library: chosen once with `wordreel index`, or for one program with `--index`.

The library remembers the address without its password. Its embeddings stay here: the server holds a copy,
which can be built again at any time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.errors import NextStep, WordreelError
from wordreel.index.base import Index
from wordreel.index.exact import ExactIndex
from wordreel.index.server import ServerIndex
from wordreel.index.server_sync import SyncReport, clips_digest
from wordreel.index.vector_server import Layout, VectorServer
from wordreel.library.backup import identity
from wordreel.library.embeddings import Gallery
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.progress import ProgressCallback
from wordreel.search.embedding import embedding_cache
from wordreel.server_address import POSTGRESQL, ServerAddress, parse_address
from wordreel.types import Int64, QueryEmbedding

LOCAL = "local"  # what `--index` takes instead of an address
ADDRESS, RECALL = "index", "index recall"  # settings
RECALL_AT = 10
CHOOSE = NextStep("name a server", command="index ADDRESS")


@dataclass(frozen=True)
class IndexStatus:
    """What a server has of a library. `recall` at 10 was measured on the queries of a bank; 1 if exact."""

    address: str
    engine: str
    exact: bool
    clips: int  # embedded in the library
    complete: bool  # the server has just those
    recall: float | None = None
    sent: SyncReport | None = None


def chosen_server(store: LibraryStore, override: str | None = None) -> ServerAddress | None:
    """The server that searches: as `--index` says, or as the library remembers; None searches here."""
    text = override if override is not None else store.setting(ADDRESS)
    return None if text in (None, LOCAL) else parse_address(str(text))


def remember_server(store: LibraryStore, address: ServerAddress | None) -> None:
    """Search this library by a server from now on, or here if None."""
    store.set_setting(ADDRESS, LOCAL if address is None else str(address))


def connect(address: ServerAddress, store: LibraryStore, model: Model) -> VectorServer:
    """The table of a library and a model on a server; nothing is sent yet."""
    layout = Layout.of(identity(store), model.fingerprint, len(model.experts), model.dim)
    if address.scheme == POSTGRESQL:
        from wordreel.index.postgresql import PostgreSQLServer

        return PostgreSQLServer(address, layout)
    from wordreel.index.milvus import MilvusServer

    return MilvusServer(address, layout)


def open_server_index(
    address: ServerAddress,
    store: LibraryStore,
    model: Model,
    gallery: Gallery,
    on_progress: ProgressCallback | None = None,
) -> ServerIndex:
    """An index over the gallery, after what the server does not have was sent."""
    return ServerIndex(
        connect(address, store, model),
        gallery.ids,
        gallery.vectors,
        gallery.available,
        lambda: _clip_ids(store),
        on_progress,
    )


def use_server(
    address: ServerAddress,
    store: LibraryStore,
    model: Model,
    queries: Sequence[QueryEmbedding] = (),
    on_progress: ProgressCallback | None = None,
    deep: bool = False,
) -> IndexStatus:
    """Send a library to a server, measure the recall with some queries, and search by it from now on."""
    gallery = embedding_cache(store, model).load()
    index = open_server_index(address, store, model, gallery, on_progress)
    report = index.synchronise(on_progress, deep) if deep else index.first_report
    recall = (
        1.0
        if index.exact
        else measured_recall(index, ExactIndex(gallery.vectors, gallery.available), queries)
    )
    remember_server(store, address)
    store.set_setting(RECALL, json.dumps({"address": str(address), "recall": recall}))
    return IndexStatus(
        str(address), index.server.describe(), index.exact, len(gallery.ids), True, recall, report
    )


def index_status(address: ServerAddress, store: LibraryStore, model: Model) -> IndexStatus:
    """What a server has now; nothing is sent."""
    server = connect(address, store, model)
    engine, marker = server.describe(), server.read_marker()
    clips = np.intersect1d(embedding_cache(store, model).load().ids, _clip_ids(store))
    complete = marker is not None and marker.complete and marker.clips == clips_digest(clips)
    recall = 1.0 if server.exact else _saved_recall(store, address)
    server.close()
    return IndexStatus(str(address), engine, server.exact, len(clips), complete, recall)


def forget_server(store: LibraryStore, model: Model, drop: bool = False) -> None:
    """Search here from now on; with `drop`, delete what the server holds."""
    address = chosen_server(store)
    if address is None:
        raise WordreelError("this library is not searched by a server", CHOOSE)
    if drop:
        connect(address, store, model).drop()
    remember_server(store, None)


def measured_recall(index: Index, exact: Index, queries: Sequence[QueryEmbedding]) -> float | None:
    """The share of the exact ten best items that the index returns, over some queries; None without any."""
    if not queries or not len(exact):
        return None
    vectors = np.stack([query.vectors for query in queries])
    weights = np.stack([query.weights for query in queries])
    found = index.search(vectors, weights, RECALL_AT).rows.tolist()
    true = exact.search(vectors, weights, RECALL_AT).rows.tolist()
    shares = [len(set(a) & set(b)) / len(set(b)) for a, b in zip(found, true, strict=True)]
    return float(np.mean(shares))


def _saved_recall(store: LibraryStore, address: ServerAddress) -> float | None:
    try:
        saved = json.loads(store.setting(RECALL) or "{}")
    except ValueError:
        return None
    known = isinstance(saved, dict) and saved.get("address") == str(address)
    return saved.get("recall") if known else None


def _clip_ids(store: LibraryStore) -> Int64:
    return np.asarray(store.clip_ids(), np.int64)
