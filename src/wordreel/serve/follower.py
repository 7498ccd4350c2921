"""Keep a replica current while it is served."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from wordreel.errors import WordreelError
from wordreel.library import Library
from wordreel.maintain.follow import published_generation
from wordreel.runtime.store import WeightStore
from wordreel.util.server_address import parse_published

log = logging.getLogger("wordreel.serve")

EVERY = 5.0  # seconds


class Follower:
    """Asks for the published generation every few seconds and follows it; searches go on meanwhile.

    It writes through a connection of its own: the server notices a change as one by another program.
    """

    def __init__(self, path: Path, address: str, weights: WeightStore, every: float = EVERY) -> None:
        self._path, self._address, self._weights, self._every = path, address, weights, every
        self._seen = -1
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def check(self) -> bool:
        """Follow what is published if it is new; whether it was."""
        generation = published_generation(parse_published(self._address))
        if generation == self._seen:
            return False
        with Library(self._path, create=False, weights=self._weights) as replica:
            self._seen = replica.follow(self._address).generation
        return True

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            try:
                self.check()
            except WordreelError as error:
                log.warning("following the published library: %s", error)
