"""The address of a vector server: `postgresql://…` or `milvus://…`, whose password never leaves memory.

    postgresql://USER@HOST:5432/DATABASE?mode=exact
    milvus://USER@HOST:19530/DATABASE?mode=hnsw&tls=1

`mode` is `exact` (every item is scored, the default) or `hnsw` (an approximate index, whose recall is
measured). `library` names a library that is published in PostgreSQL (see `library.publication`). Other
options of a PostgreSQL address (`sslmode`, …) go to the driver as they are. The password is that of the
address, or `$WORDREEL_INDEX_PASSWORD`; PostgreSQL also reads `~/.pgpass`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from wordreel.errors import NextStep, WordreelError

POSTGRESQL, MILVUS = "postgresql", "milvus"
EXACT, HNSW = "exact", "hnsw"
TLS = "tls"  # option of a Milvus address
LIBRARY = "library"  # the name of a published library, unless the address gives another
PASSWORD_VARIABLE = "WORDREEL_INDEX_PASSWORD"  # noqa: S105 - the name of it
PORTS = {POSTGRESQL: 5432, MILVUS: 19530}
EXAMPLE = NextStep("write it as postgresql://USER@HOST/DATABASE or milvus://HOST:19530")


@dataclass(frozen=True)
class ServerAddress:
    """Where a vector server is. `str()` and `repr()` leave the password out."""

    scheme: str
    host: str
    port: int
    user: str = ""
    database: str = ""
    mode: str = EXACT
    options: tuple[tuple[str, str], ...] = ()
    library: str = LIBRARY
    password: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        own = [("mode", self.mode, EXACT), ("library", self.library, LIBRARY)]
        options = urlencode([*((key, value) for key, value, usual in own if value != usual), *self.options])
        path = f"/{quote(self.database, safe='')}" if self.database else ""
        return f"{self.scheme}://{user}{host}:{self.port}{path}{'?' if options else ''}{options}"


def parse_address(text: str) -> ServerAddress:
    """Read an address; a missing password is taken from the environment.

    Raises:
        WordreelError: It is not an address of a vector server. The message does not repeat the password.

    >>> str(parse_address("postgresql://me:secret@db.example.org/films?mode=hnsw"))
    'postgresql://me@db.example.org:5432/films?mode=hnsw'
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise WordreelError("the address of the index cannot be read", EXAMPLE) from None
    scheme = POSTGRESQL if parts.scheme == "postgres" else parts.scheme
    if scheme not in PORTS or not parts.hostname:
        raise WordreelError(f"{redact(text)!r} is not the address of a vector server", EXAMPLE)
    options = dict(parse_qsl(parts.query))
    mode, library = options.pop("mode", EXACT), options.pop("library", LIBRARY)
    if mode not in (EXACT, HNSW):
        raise WordreelError(f"there is no mode {mode!r} of an index", NextStep("choose exact or hnsw"))
    if any("password" in key or "secret" in key for key in options):  # the address is stored and printed
        raise WordreelError(f"put the password into ${PASSWORD_VARIABLE}, not into the options")
    if scheme == MILVUS and not (options.keys() <= {TLS} and options.get(TLS, "0") in ("0", "1")):
        raise WordreelError(
            "an option of the address is not known", NextStep(f"Milvus has mode, and {TLS}=1")
        )
    return ServerAddress(
        scheme,
        parts.hostname,
        port or PORTS[scheme],
        unquote(parts.username or ""),
        unquote(parts.path.strip("/")),
        mode,
        tuple(sorted(options.items())),
        library,
        unquote(parts.password or "") or os.environ.get(PASSWORD_VARIABLE, ""),
    )


def parse_published(text: str) -> ServerAddress:
    """Read the address of a published library; only PostgreSQL holds them."""
    address = parse_address(text)
    if address.scheme != POSTGRESQL:
        step = NextStep("write it as postgresql://USER@HOST/DATABASE")
        raise WordreelError(f"a library is published in PostgreSQL, not at {address}", step)
    return address


def redact(text: str) -> str:
    """Return a text that may be an address, without what stands before its last `@`.

    >>> redact("mysql://me:p@ss@host/x")
    'mysql://***@host/x'
    """
    start, mark, rest = text.partition("://")
    if not mark:
        return text
    return f"{start}://***@{rest.rpartition('@')[2]}" if "@" in rest else text
