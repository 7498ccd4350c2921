"""The query log: saves what people search for into a bank. Off by default.

The page searches while a person types: only a query that its client did not continue typing is saved.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from wordreel.banks.sources import LONGEST
from wordreel.catalogue import banks
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NOT_WRITABLE

SWITCH, BANK = "serve.log_queries", "serve.log_bank"
SOURCE = "the server's query log"
SETTLED = 4.0  # seconds after which a query counts as typed to its end
MAX_WAITING = 1000  # queries waiting to be written


class QueryLog:
    """Collects queries and writes them to a bank."""

    def __init__(self, store: LibraryStore, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._now = store, now
        self._lock = threading.Lock()
        self._typing: dict[str, tuple[str, float]] = {}
        self._settled: list[str] = []

    @property
    def on(self) -> bool:
        """Whether queries are logged; another process of the server may have changed it."""
        return self._store.setting(SWITCH) == "1"

    @property
    def bank(self) -> str:
        """The bank that they are logged into."""
        return self._store.setting(BANK) or "asked"

    def set(self, on: bool, bank: str) -> None:
        """Turn the log on or off; turning it off drops the queries that are not saved yet."""
        self._store.set_setting(SWITCH, "1" if on else "0")
        self._store.set_setting(BANK, bank)
        if not on:
            with self._lock:
                self._typing.clear()
                self._settled.clear()

    def record(self, client: str, text: str) -> None:
        """Note a client's query; it replaces the one before where the client only continued typing."""
        words = " ".join(text.split())
        if not self.on or not words or len(words) > LONGEST:
            return
        with self._lock:
            before, _ = self._typing.get(client, ("", 0.0))
            if before and not words.startswith(before) and not before.startswith(words):
                self._settle(before)
            self._typing[client] = (words, self._now())

    def flush(self) -> int:
        """Save finished queries; returns how many are new. A busy library gets them at the next call."""
        with self._lock:
            late = [c for c, (_, at) in self._typing.items() if self._now() - at > SETTLED]
            for client in late:
                self._settle(self._typing.pop(client)[0])
            texts, self._settled = self._settled, []
        if not texts or not self.on:
            return 0
        bank = self.bank
        try:
            if any(row.name == bank for row in banks.list_banks(self._store)):
                return banks.add_queries(self._store, bank, texts, SOURCE)
            return len(banks.create_bank(self._store, bank, texts, SOURCE))
        except NOT_WRITABLE:
            with self._lock:
                self._settled = [*texts, *self._settled][:MAX_WAITING]
            return 0

    def _settle(self, text: str) -> None:
        if len(self._settled) < MAX_WAITING:
            self._settled.append(text)
