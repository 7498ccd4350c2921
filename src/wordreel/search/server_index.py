"""Which server searches a library: chosen once with `wordreel index`, or for one program with `--index`.

The library remembers the address without its password. Its embeddings stay here: the server holds a copy,
which can be built again at any time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embedding_cache
from wordreel.embed.embedding_cache import Gallery
from wordreel.errors import NextStep, WordreelError
from wordreel.models.base import Model
from wordreel.progress import ProgressCallback
from wordreel.types import Int64
from wordreel.util.server_address import POSTGRESQL, ServerAddress, parse_address

if TYPE_CHECKING:
    from wordreel.index.base import QuerySample
    from wordreel.index.cached import MeasuredRecall
    from wordreel.index.server import ServerIndex
    from wordreel.index.server_sync import SyncReport
    from wordreel.index.vector_server import VectorServer

LOCAL = "local"  # what `--index` takes instead of an address
ADDRESS, RECALL = "index", "index recall"  # settings
CHOOSE = NextStep("name a server", command="index ADDRESS")


@dataclass(frozen=True)
class IndexStatus:
    """What a server has of a library. The `recall` of approximate search is measured on a bank's queries."""

    address: str
    engine: str
    exact: bool
    clips: int  # embedded in the library
    complete: bool  # the server has just those
    recall: MeasuredRecall | None = None
    sent: SyncReport | None = None


def chosen_server(store: LibraryStore, override: str | None = None) -> ServerAddress | None:
    """Return the server that searches: as `--index` says, or as the library remembers; None searches here."""
    text = override if override is not None else store.setting(ADDRESS)
    return None if text in (None, LOCAL) else parse_address(str(text))


def remember_server(store: LibraryStore, address: ServerAddress | None) -> None:
    """Search this library by a server from now on, or here if None."""
    store.set_setting(ADDRESS, LOCAL if address is None else str(address))


def connect(address: ServerAddress, store: LibraryStore, model: Model) -> VectorServer:
    """Return the table of a library and a model on a server; nothing is sent yet."""
    from wordreel.index.vector_server import Layout
    from wordreel.maintain.backup import identity

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
    """Return an index over the gallery, after what the server does not have was sent."""
    from wordreel.index.server import ServerIndex

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
    queries: QuerySample | None = None,
    on_progress: ProgressCallback | None = None,
    deep: bool = False,
) -> IndexStatus:
    """Send a library to a server, measure the recall with some queries, and search by it from now on."""
    from wordreel.index.cached import measure_recall
    from wordreel.index.exact import ExactIndex

    gallery, columns = embedding_cache(store, model).open()
    index = open_server_index(address, store, model, gallery, on_progress)
    report = index.synchronise(on_progress, deep) if deep else index.first_report
    recall = None
    if not index.exact and queries is not None and report.rows:
        exact = ExactIndex(gallery.vectors, gallery.available)
        recall = measure_recall(index, exact, queries, columns.live)
    remember_server(store, address)
    store.set_setting(RECALL, json.dumps({"address": str(address), "recall": recall and asdict(recall)}))
    engine = index.server.describe()
    return IndexStatus(str(address), engine, index.exact, report.rows, True, recall, report)


def index_status(address: ServerAddress, store: LibraryStore, model: Model) -> IndexStatus:
    """Return what a server has now; nothing is sent."""
    from wordreel.index.server_sync import clips_digest

    server = connect(address, store, model)
    engine, marker = server.describe(), server.read_marker()
    clips = np.intersect1d(embedding_cache(store, model).open()[0].ids, _clip_ids(store))
    complete = marker is not None and marker.complete and marker.clips == clips_digest(clips)
    recall = None if server.exact else _saved_recall(store, address)
    server.close()
    return IndexStatus(str(address), engine, server.exact, len(clips), complete, recall)


def forget_server(
    address: ServerAddress | None, store: LibraryStore, model: Model, drop: bool = False
) -> None:
    """Search here from now on; with `drop`, delete what the server holds."""
    if address is None:
        raise WordreelError("this library is not searched by a server", CHOOSE)
    if drop:
        connect(address, store, model).drop()
    remember_server(store, None)


def _saved_recall(store: LibraryStore, address: ServerAddress) -> MeasuredRecall | None:
    """Return what was measured of this server last."""
    from wordreel.index.cached import MeasuredRecall

    try:
        saved = json.loads(store.setting(RECALL) or "{}")
        return MeasuredRecall(**saved["recall"]) if saved["address"] == str(address) else None
    except (ValueError, TypeError, KeyError):
        return None


def _clip_ids(store: LibraryStore) -> Int64:
    return np.asarray(store.clip_ids(), np.int64)
