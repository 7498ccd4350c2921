"""The options of a server."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Options:
    """What `wordreel serve` was started with."""

    host: str = "127.0.0.1"
    port: int = 8010
    names: tuple[str, ...] = ()  # other names under which the server is called
    roots: tuple[Path, ...] = ()  # folders from which files may be added
    read_only: bool = False
    token: str | None = None  # its salted hash; None: no login
    max_upload: int = 4 * 2**30  # bytes
    max_json: int = 16 * 2**20
    certificate: Path | None = None  # with its key: serve https
    key: Path | None = None
    workers: int = 1  # processes that serve
    scratch: Path | None = None  # the folder that they share; None: the one process makes its own
    timeout: float = 30.0  # seconds for a search to answer

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def private(self) -> bool:
        """Whether others than the user of this machine may ask."""
        return self.token is not None or not self.loopback

    def known_host(self, name: str) -> bool:
        """Return whether a request for this host is meant for this server.

        A page of another site can make its own name point here, but not an address or our names.
        """
        if name in LOOPBACK_NAMES or name in self.names or name == self.host:
            return True
        if self.loopback:
            return False
        return is_address(name) or name == socket.gethostname().lower()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("10.0.0.2")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_address(name: str) -> bool:
    """Return whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
