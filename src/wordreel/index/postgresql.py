"""Search by PostgreSQL with the pgvector extension.

One table per library and model. Rows of a pattern hold the experts that are present and nothing for the
others, so vectors of one column differ in length, which pgvector allows; searches and indexes are confined
to one pattern. `exact` orders all rows of the pattern by inner product. `hnsw` builds a partial index per
pattern over half-precision copies (16 bits hold 4,000 dimensions, 32 bits only 2,000), takes candidates from
it, filters while it scans (`hnsw.iterative_scan`), and orders them by the full vectors. Patterns that are
small or too wide stay exact.
"""

from __future__ import annotations

import hashlib
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from wordreel.index.vector_server import SLOTS, GroupSearch, Layout, Marker, NewRows, ServerRows, pattern_code
from wordreel.types import Float32, Int64
from wordreel.util.postgresql_client import Unreachable, connect, explain
from wordreel.util.server_address import EXACT, ServerAddress

T = TypeVar("T")

MARKERS = "wordreel_markers"
WIDEST_HNSW = 4_000  # dimensions of a half-precision vector that pgvector indexes
FEWEST_HNSW = 2_000  # rows of a pattern; fewer are scanned sooner than a graph is walked
EF_SEARCH = 200  # the length of the candidate list; pgvector allows 1,000
CANDIDATES = 4  # times as many as asked for are ordered by their full vectors
MOST_SCANNED = 200_000  # rows of the graph that a filter may discard
REBUILD = 0.1  # of the rows; if more change, graphs are built anew
LEAST_SHARE = 0.1  # of a pattern that passes a filter; a graph would discard most of what it finds
GRAPH_MEMORY = "1GB"  # for building one


class PostgreSQLServer:
    """A table of vectors in PostgreSQL."""

    name = "postgresql"
    max_k = 1_000_000

    def __init__(self, address: ServerAddress, layout: Layout) -> None:
        self.exact = address.mode == EXACT
        self._address, self._layout = address, layout
        self._table = layout.name
        self._pool: queue.LifoQueue[Any] = queue.LifoQueue()

    # Connections

    def _do(self, work: Callable[[Any], T]) -> T:
        """Do something that may be done twice, once more if the connection turns out to be dead."""
        import psycopg

        while True:
            try:
                connection, idle = self._pool.get_nowait(), True
            except queue.Empty:
                connection, idle = connect(self._address), False
            try:
                return work(connection)
            except psycopg.Error as error:
                known = explain(error, self._address)
                if not (idle and isinstance(known, Unreachable)):
                    raise known from error
            finally:
                if not connection.closed:
                    self._pool.put(connection)

    def close(self) -> None:
        while not self._pool.empty():
            self._pool.get().close()

    # The table

    def prepare(self) -> None:
        def work(connection: Any) -> None:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_number("wordreel tables"),))
                if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
                    connection.execute("CREATE EXTENSION vector")
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {MARKERS} (name text PRIMARY KEY, marker text NOT NULL)"
                )
                connection.execute(
                    f"""CREATE TABLE IF NOT EXISTS {self._table} (
                        clip bigint PRIMARY KEY, pattern integer NOT NULL, digest bigint NOT NULL,
                        biases real[] NOT NULL, embedding vector NOT NULL)"""
                )
                connection.execute(
                    f"CREATE INDEX IF NOT EXISTS {self._table}_pattern ON {self._table} (pattern, clip)"
                )

        self._do(work)

    @contextmanager
    def lock(self) -> Iterator[None]:
        import psycopg

        connection = connect(self._address)
        try:
            connection.execute("SELECT pg_advisory_lock(%s)", (_number(self._table),))
        except psycopg.Error as error:
            raise explain(error, self._address) from error
        try:
            yield
        finally:
            connection.close()  # which unlocks

    def read_marker(self) -> Marker | None:
        return self._do(self._marker)

    def _marker(self, connection: Any) -> Marker | None:
        if connection.execute("SELECT to_regclass(%s)", (MARKERS,)).fetchone()[0] is None:
            return None
        row = connection.execute(
            f"SELECT marker FROM {MARKERS} WHERE name = %s",  # noqa: S608 - a constant
            (self._table,),
        ).fetchone()
        return Marker.from_json(row[0]) if row else None

    def write_marker(self, marker: Marker) -> None:
        statement = f"""INSERT INTO {MARKERS} VALUES (%s, %s)
                        ON CONFLICT (name) DO UPDATE SET marker = excluded.marker"""  # noqa: S608
        self._do(lambda connection: connection.execute(statement, (self._table, marker.to_json())))

    def rows(self) -> ServerRows:
        def work(connection: Any) -> list[tuple[Any, ...]]:
            columns = ", ".join(f"biases[{slot + 1}]" for slot in range(SLOTS))
            query = f"SELECT clip, digest, {columns} FROM {self._table}"  # noqa: S608
            return list(connection.execute(query, binary=True).fetchall())

        rows = self._do(work)
        return ServerRows(
            np.array([row[0] for row in rows], np.int64),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2:] for row in rows], np.float32).reshape(len(rows), SLOTS),
        )

    def begin(self, rows: int) -> None:
        """Drop the graphs before many rows change: building them again takes a fraction of the time."""

        def work(connection: Any) -> None:
            total = sum(rows for _, _, rows in self._patterns(connection))
            if rows > REBUILD * total:
                for code in self._graphs(connection):
                    connection.execute(f"DROP INDEX {self._table}_{code}")

        if not self.exact:
            self._do(work)

    def put(self, rows: NewRows) -> None:
        code = pattern_code(rows.pattern)
        stream = copy_stream(rows.clips, code, rows.digests, rows.biases, rows.extended())
        staging = f"{self._table}_new"

        def work(connection: Any) -> None:
            with connection.transaction():
                connection.execute(f"CREATE TEMPORARY TABLE {staging} (LIKE {self._table}) ON COMMIT DROP")
                with connection.cursor().copy(f"COPY {staging} FROM STDIN (FORMAT BINARY)") as copy:
                    copy.write(stream)
                connection.execute(
                    f"""INSERT INTO {self._table} SELECT * FROM {staging} ON CONFLICT (clip) DO UPDATE SET
                        pattern = excluded.pattern, digest = excluded.digest, biases = excluded.biases,
                        embedding = excluded.embedding"""  # noqa: S608
                )

        self._do(work)

    def delete(self, clips: Int64) -> None:
        statement = f"DELETE FROM {self._table} WHERE clip = ANY(%s)"  # noqa: S608
        self._do(lambda connection: connection.execute(statement, (clips.tolist(),)))

    def finish(self) -> None:
        def work(connection: Any) -> None:
            connection.execute(f"SET maintenance_work_mem = '{GRAPH_MEMORY}'")
            for code, width, rows in [] if self.exact else self._patterns(connection):
                if rows >= FEWEST_HNSW and width <= WIDEST_HNSW:
                    connection.execute(
                        f"""CREATE INDEX IF NOT EXISTS {self._table}_{code} ON {self._table}
                            USING hnsw ((embedding::halfvec({width})) halfvec_ip_ops)
                            WHERE pattern = {code}"""
                    )
            connection.execute(f"ANALYZE {self._table} (clip, pattern)")

        self._do(work)

    def _patterns(self, connection: Any) -> list[tuple[int, int, int]]:
        """Code, dimensions and rows of each pattern."""
        query = f"SELECT pattern, count(*) FROM {self._table} GROUP BY pattern ORDER BY pattern"  # noqa: S608
        return [
            (code, int(code).bit_count() * self._layout.dim + SLOTS, rows)
            for code, rows in connection.execute(query).fetchall()
        ]

    # Searching

    def search(self, groups: Sequence[GroupSearch]) -> tuple[list[Int64], Marker | None]:
        def work(connection: Any) -> tuple[list[Int64], Marker | None]:
            with connection.transaction():  # one snapshot of all groups and of the marker
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                marker = self._marker(connection)
                if marker is None:
                    return [], None
                graphs = set() if self.exact else self._graphs(connection)
                if graphs:
                    connection.execute(
                        f"SET LOCAL hnsw.ef_search = {EF_SEARCH}; "
                        f"SET LOCAL hnsw.iterative_scan = relaxed_order; "
                        f"SET LOCAL hnsw.max_scan_tuples = {MOST_SCANNED}"
                    )
                found = [self._search(connection, group, graphs) for group in groups]
                return found, marker

        return self._do(work)

    def _graphs(self, connection: Any) -> set[int]:
        """Return the patterns that have a graph."""
        query = "SELECT indexname FROM pg_indexes WHERE tablename = %s AND indexdef LIKE '%%USING hnsw%%'"
        return {int(name.rpartition("_")[2]) for (name,) in connection.execute(query, (self._table,))}

    def _search(self, connection: Any, group: GroupSearch, graphs: set[int]) -> Int64:
        code = pattern_code(group.pattern)
        graph = code in graphs and group.share >= LEAST_SHARE
        statement = select(self._table, code, len(group.query), graph)
        values = {
            "query": vector_text(group.query), "ranges": multirange(group.ranges), "k": group.k,
            "near": CANDIDATES * group.k,
        }  # fmt: skip
        rows = connection.execute(statement, values).fetchall()
        return np.array([row[0] for row in rows], np.int64)

    def describe(self) -> str:
        def work(connection: Any) -> str:
            version = connection.execute("SHOW server_version").fetchone()[0]
            row = connection.execute(
                "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
            ).fetchone()
            return f"PostgreSQL {version}, pgvector {row[0] if row else 'not installed'}"

        return self._do(work)

    def drop(self) -> None:
        def work(connection: Any) -> None:
            with connection.transaction():
                if connection.execute("SELECT to_regclass(%s)", (self._table,)).fetchone()[0] is not None:
                    connection.execute(f"DROP TABLE {self._table}")
                    connection.execute(f"DELETE FROM {MARKERS} WHERE name = %s", (self._table,))  # noqa: S608

        self._do(work)


def select(table: str, code: int, width: int, graph: bool) -> str:
    """Return the statement that searches one pattern: all of its rows, or candidates from its graph.

    `+ 0.0` keeps the planner from answering an exact search from a graph.
    """
    inside = f"pattern = {code} AND clip <@ %(ranges)s::int8multirange"
    score = "(embedding <#> %(query)s::vector) + 0.0"
    if not graph:
        source = f"{table} WHERE {inside}"
    else:
        source = (
            f"(SELECT clip, embedding FROM {table} WHERE {inside} ORDER BY "  # noqa: S608
            f"embedding::halfvec({width}) <#> %(query)s::vector::halfvec({width}) LIMIT %(near)s) near"
        )
    return f"SELECT clip, -({score}) FROM {source} ORDER BY {score}, clip LIMIT %(k)s"  # noqa: S608


def multirange(ranges: Int64) -> str:
    """Write ranges as a multirange of PostgreSQL."""
    return "{" + ",".join(f"[{low},{high}]" for low, high in ranges.tolist()) + "}"


def vector_text(vector: Float32) -> str:
    """Write a vector as pgvector reads it."""
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def copy_stream(clips: Int64, code: int, digests: Int64, biases: Float32, vectors: Float32) -> bytes:
    """Encode rows in PostgreSQL's binary COPY format.

    The columns are clip, pattern, digest, biases `real[]` and embedding `vector`.
    """
    count, width = vectors.shape
    bias = [("length", ">i4"), ("value", ">f4")]
    row = np.zeros(
        count,
        np.dtype([
            ("fields", ">i2"),
            ("clip_length", ">i4"), ("clip", ">i8"),
            ("pattern_length", ">i4"), ("pattern", ">i4"),
            ("digest_length", ">i4"), ("digest", ">i8"),
            ("biases_length", ">i4"), ("dimensions", ">i4"), ("nulls", ">i4"), ("kind", ">i4"),
            ("items", ">i4"), ("lower", ">i4"), ("biases", bias, (SLOTS,)),
            ("vector_length", ">i4"), ("width", ">i2"), ("unused", ">i2"), ("vector", ">f4", (width,)),
        ]),
    )  # fmt: skip
    row["fields"] = 5
    row["clip_length"], row["clip"] = 8, clips
    row["pattern_length"], row["pattern"] = 4, code
    row["digest_length"], row["digest"] = 8, digests
    row["biases_length"] = 20 + SLOTS * 8
    row["dimensions"], row["kind"], row["items"], row["lower"] = 1, 700, SLOTS, 1  # 700: float4
    row["biases"]["length"], row["biases"]["value"] = 4, biases
    row["vector_length"], row["width"], row["vector"] = 4 + 4 * width, width, vectors
    head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    return head + row.tobytes() + b"\xff\xff"


def _number(name: str) -> int:
    """Return the key of an advisory lock."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
