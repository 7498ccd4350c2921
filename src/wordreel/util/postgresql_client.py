"""Connections to PostgreSQL, and its errors in words that say what to do."""

from __future__ import annotations

from typing import Any

from wordreel.errors import IndexServerError, NextStep
from wordreel.util.server_address import PASSWORD_VARIABLE, ServerAddress

TIMEOUT = 10  # seconds to connect


class Unreachable(IndexServerError):
    """The server does not answer, or the connection was lost."""


def connect(address: ServerAddress) -> Any:
    """Connect so that each statement is committed by itself."""
    try:
        import psycopg
    except ImportError:
        raise IndexServerError(
            "PostgreSQL needs one more package", NextStep("run `pip install 'wordreel[postgresql]'`")
        ) from None
    values = {
        "host": address.host, "port": address.port, "user": address.user, "dbname": address.database,
        "password": address.password, "connect_timeout": TIMEOUT, **dict(address.options),
    }  # fmt: skip
    try:
        return psycopg.connect(**{k: v for k, v in values.items() if v}, autocommit=True)
    except psycopg.Error as error:
        raise explain(error, address) from None  # the driver's error may repeat the whole address


def explain(error: Exception, address: ServerAddress) -> IndexServerError:
    """Return a database error as one that says what the user can do."""
    import psycopg

    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if address.password:
        text = text.replace(address.password, "***")
    if (
        isinstance(error, psycopg.errors.FeatureNotSupported | psycopg.errors.UndefinedFile)
        and "vector" in text
    ):
        step = NextStep("install pgvector on the server, then run `CREATE EXTENSION vector` in the database")
        return IndexServerError(f"{address} does not have the pgvector extension", step)
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        step = NextStep(
            "let an administrator run `CREATE EXTENSION vector`, and grant this user CREATE on the schema"
        )
        return IndexServerError(f"{address} does not allow this ({text})", step)
    if "password" in text or "authentication" in text:
        step = NextStep(f"set ${PASSWORD_VARIABLE}, or give the user in the address")
        return IndexServerError(f"{address} refused the login ({text})", step)
    if isinstance(error, psycopg.OperationalError):
        return Unreachable(
            f"{address} cannot be reached ({text})",
            NextStep("start the server and run the same command again"),
        )
    return IndexServerError(f"{address}: {text}", NextStep("check the index", "doctor"))
