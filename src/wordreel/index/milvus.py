"""Search by a Milvus server.

One collection per library, model and mode, one partition per pattern of available experts; absent experts are
zeros, as all vectors of a collection are equally long. `exact` uses the FLAT index, which scores every row;
`hnsw` a graph.

A strongly consistent read waits for Milvus's clock, 0.1 to 0.2 s, so only writers pay for it (`finish`);
searches then see at least what this process wrote and read before. Milvus has no transactions and no locks:
let one process at a time write to a library.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from wordreel.errors import IndexServerError, NextStep
from wordreel.index.vector_server import SLOTS, GroupSearch, Layout, Marker, NewRows, ServerRows, pattern_code
from wordreel.types import Bool, Float32, Int64
from wordreel.util.server_address import EXACT, PASSWORD_VARIABLE, TLS, ServerAddress

T = TypeVar("T")

PAGE = 8_192  # rows of one query; Milvus returns at most 16,384
TERMS = 2_048  # ranges of one filter expression; a longer filter is several searches
EF_SEARCH = 256
HNSW_PARAMETERS = {"M": 32, "efConstruction": 200}
TIMEOUT = 30.0  # seconds
STRONG, BOUNDED, SESSION = "Strong", "Bounded", "Session"
STALE = 6.0  # seconds; a bounded read is at most 5 behind
MARKER_ID = 1


class MilvusServer:
    """A collection of vectors in Milvus."""

    name = "milvus"
    max_k = 16_384

    def __init__(self, address: ServerAddress, layout: Layout) -> None:
        self.exact = address.mode == EXACT
        self._address, self._layout = address, layout
        # The kind of a collection's index is chosen once.
        self._rows = layout.name if self.exact else f"{layout.name}_hnsw"
        self._markers = f"{self._rows}_marker"
        self._width = layout.experts * layout.dim + SLOTS
        self._connected: Any = None

    def _client(self) -> Any:
        if self._connected is None:
            try:
                from pymilvus import MilvusClient
            except ImportError:
                raise IndexServerError(
                    "Milvus needs one more package", NextStep("run `pip install 'wordreel[milvus]'`")
                ) from None
            logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # errors are raised, not printed too
            secure = dict(self._address.options).get(TLS) == "1"
            self._connected = MilvusClient(
                uri=f"{'https' if secure else 'http'}://{self._address.host}:{self._address.port}",
                user=self._address.user,
                password=self._address.password,
                db_name=self._address.database,
                timeout=TIMEOUT,
            )
        return self._connected

    def _do(self, work: Callable[[Any], T]) -> T:
        for last in (False, True):
            try:
                return work(self._client())
            except IndexServerError:
                raise
            except Exception as error:  # the client has many kinds, gRPC's own among them
                if "not loaded" in str(error) and not last:
                    self._load()
                    continue
                self.close()
                raise explain(error, self._address) from None
        raise AssertionError  # the second attempt returns or raises

    def _load(self) -> None:
        """Bring the collections back into memory, as after a restart of the server."""
        try:
            client = self._client()
            for name in (self._markers, self._rows):
                if client.has_collection(name):
                    client.load_collection(name)
        except Exception as error:
            self.close()
            raise explain(error, self._address) from None

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    # The collection

    def prepare(self) -> None:
        self._do(self._create)

    def _create(self, client: Any) -> None:
        from pymilvus import DataType

        if not client.has_collection(self._markers):
            schema = client.create_schema(auto_id=False)
            schema.add_field("id", DataType.INT64, is_primary=True)
            schema.add_field("marker", DataType.VARCHAR, max_length=4_096)
            schema.add_field("unused", DataType.FLOAT_VECTOR, dim=2)  # Milvus wants one
            client.create_collection(self._markers, schema=schema, consistency_level=STRONG)
        if not client.has_collection(self._rows):
            schema = client.create_schema(auto_id=False)
            schema.add_field("clip", DataType.INT64, is_primary=True)
            schema.add_field("digest", DataType.INT64)
            for slot in range(SLOTS):
                schema.add_field(f"bias_{slot}", DataType.FLOAT)
                schema.add_field(f"known_{slot}", DataType.BOOL)
            schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=self._width)
            client.create_collection(self._rows, schema=schema, consistency_level=STRONG)
        self._open_collection(client, self._markers, "unused", exact=True)
        self._open_collection(client, self._rows, "embedding", exact=self.exact)

    def _open_collection(self, client: Any, name: str, vectors: str, exact: bool) -> None:
        """Load a collection, after its index was created, which a crash may have left out."""
        if not client.list_indexes(name):
            indexes = client.prepare_index_params()
            indexes.add_index(
                vectors, index_type="FLAT" if exact else "HNSW", metric_type="IP",
                params={} if exact else HNSW_PARAMETERS,
            )  # fmt: skip
            client.create_index(name, indexes)
        client.load_collection(name)

    @contextmanager
    def lock(self) -> Iterator[None]:
        yield

    def read_marker(self) -> Marker | None:
        return self._do(lambda client: self._marker(client, STRONG))

    def _marker(self, client: Any, consistency: str) -> Marker | None:
        if not client.has_collection(self._markers):
            return None
        rows = client.query(
            self._markers, ids=[MARKER_ID], output_fields=["marker"], consistency_level=consistency
        )
        return Marker.from_json(rows[0]["marker"]) if rows else None

    def write_marker(self, marker: Marker) -> None:
        row = {"id": MARKER_ID, "marker": marker.to_json(), "unused": [0.0, 0.0]}
        before = self.read_marker()
        self._do(lambda client: client.upsert(self._markers, [row]))
        if before is not None and any(
            old and old != new for old, new in zip(before.stamps, marker.stamps, strict=True)
        ):
            time.sleep(STALE)  # until no search reads the old stamp together with the new rows

    def rows(self) -> ServerRows:
        rows = self._do(self._all)
        biases = np.array([[row[f"bias_{slot}"] for slot in range(SLOTS)] for row in rows], np.float32)
        known = np.array([[row[f"known_{slot}"] for slot in range(SLOTS)] for row in rows], bool)
        shape = (len(rows), SLOTS)
        return ServerRows(
            np.array([row["clip"] for row in rows], np.int64),
            np.array([row["digest"] for row in rows], np.int64),
            np.where(known.reshape(shape), biases.reshape(shape), np.float32(np.nan)),
        )

    def _all(self, client: Any) -> list[dict[str, Any]]:
        """Every row without its vector, page by page; Milvus returns the lowest ids first."""
        fields = [
            "clip",
            "digest",
            *(f"{kind}_{slot}" for kind in ("bias", "known") for slot in range(SLOTS)),
        ]
        rows: list[dict[str, Any]] = []
        while True:
            above = f"clip > {rows[-1]['clip']}" if rows else "clip >= 0"
            page = client.query(
                self._rows, filter=above, output_fields=fields, limit=PAGE, consistency_level=STRONG
            )
            rows += sorted(page, key=lambda row: int(row["clip"]))
            if len(page) < PAGE:
                return rows

    def begin(self, rows: int) -> None:
        """Do nothing: Milvus builds its indexes when segments are full."""

    def put(self, rows: NewRows) -> None:
        partition = _partition(rows.pattern)
        wide = self._widened(rows.pattern, rows.extended())
        known = ~np.isnan(rows.biases)
        biases = np.nan_to_num(rows.biases)
        entities = [
            {"clip": clip, "digest": digest, "embedding": vector}
            | {f"bias_{slot}": float(bias[slot]) for slot in range(SLOTS)}
            | {f"known_{slot}": bool(there[slot]) for slot in range(SLOTS)}
            for clip, digest, vector, bias, there in zip(
                rows.clips.tolist(), rows.digests.tolist(), wide, biases, known, strict=True
            )
        ]

        def work(client: Any) -> None:
            if not client.has_partition(self._rows, partition):
                client.create_partition(self._rows, partition)
            client.upsert(self._rows, entities, partition_name=partition)

        self._do(work)

    def delete(self, clips: Int64) -> None:
        def work(client: Any) -> None:
            for start in range(0, len(clips), PAGE):
                client.delete(self._rows, ids=clips[start : start + PAGE].tolist())

        self._do(work)

    def finish(self) -> None:
        """Wait until searches see all that was written."""
        self._do(
            lambda client: client.query(
                self._rows, filter="", output_fields=["count(*)"], consistency_level=STRONG
            )
        )

    # Searching

    def search(self, groups: Sequence[GroupSearch]) -> tuple[list[Int64], Marker | None]:
        def work(client: Any) -> tuple[list[Int64], Marker | None]:
            if not client.has_collection(self._rows):
                return [], None
            return [self._search(client, group) for group in groups], self._marker(client, BOUNDED)

        return self._do(work)

    def _search(self, client: Any, group: GroupSearch) -> Int64:
        parameters = {} if self.exact else {"ef": max(EF_SEARCH, group.k)}
        found: list[tuple[float, int]] = []
        for expression in expressions(group.ranges):
            (hits,) = client.search(
                self._rows,
                data=list(self._widened(group.pattern, group.query[None])),
                limit=group.k,
                filter=expression,
                partition_names=[_partition(group.pattern)],
                search_params={"metric_type": "IP", "params": parameters},
                consistency_level=SESSION,
            )
            found += [(-float(hit["distance"]), int(hit["id"])) for hit in hits]
        return np.array([clip for _, clip in sorted(found)[: group.k]], np.int64)

    def _widened(self, pattern: Bool, vectors: Float32) -> Float32:
        """Vectors `[n, present experts · dim + SLOTS]` with zeros for the absent experts."""
        count, dim = len(vectors), self._layout.dim
        wide = np.zeros((count, self._width), np.float32)
        experts = wide[:, :-SLOTS].reshape(count, len(pattern), dim)
        experts[:, pattern] = vectors[:, :-SLOTS].reshape(count, int(pattern.sum()), dim)
        wide[:, :-SLOTS] = experts.reshape(count, -1)
        wide[:, -SLOTS:] = vectors[:, -SLOTS:]
        return wide

    def describe(self) -> str:
        return self._do(lambda client: f"Milvus {client.get_server_version()}")

    def drop(self) -> None:
        def work(client: Any) -> None:
            for name in (self._markers, self._rows):
                if client.has_collection(name):
                    client.drop_collection(name)

        self._do(work)


def expressions(ranges: Int64) -> list[str]:
    """Filter expressions that together admit the clips in these ranges, each short enough for Milvus.

    >>> expressions(np.array([[3, 4], [9, 9], [11, 11]]))
    ['(clip in [9, 11] or (clip >= 3 and clip <= 4))']
    """
    out = []
    for start in range(0, len(ranges), TERMS):
        some = ranges[start : start + TERMS]
        single = some[some[:, 0] == some[:, 1], 0].tolist()
        terms = [f"clip in {single}"] if single else []
        terms += [f"(clip >= {low} and clip <= {high})" for low, high in some.tolist() if low < high]
        out.append(_any(terms))
    return out


def _any(terms: list[str]) -> str:
    """Join terms by "or" as a balanced tree: Milvus refuses expressions that are nested deeply."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_any(terms[:half])} or {_any(terms[half:])})"


def explain(error: Exception, address: ServerAddress) -> IndexServerError:
    """Return an error of the client as one that says what the user can do."""
    text = str(getattr(error, "message", "") or error).strip().partition("\n")[0]
    if address.password:
        text = text.replace(address.password, "***")
    if "auth" in text.lower() or "permission" in text.lower():
        step = NextStep(f"set ${PASSWORD_VARIABLE}, or give the user in the address")
        return IndexServerError(f"{address} refused the login ({text})", step)
    return IndexServerError(
        f"{address} cannot be used ({text})", NextStep("start the server and run the same command again")
    )


def _partition(pattern: Bool) -> str:
    return f"experts_{pattern_code(pattern)}"
