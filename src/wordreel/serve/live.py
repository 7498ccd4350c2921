"""The open index, exchanged as a whole when the library has changed: a search sees the old one or the new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from wordreel.banks.choice import Choice, choose
from wordreel.errors import WordreelError
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.remember import Remembered
from wordreel.search.engine import Engine
from wordreel.search.filters import Filters
from wordreel.search.fitting import check_fits

T = TypeVar("T")

CHOICES = 32  # ways to rank that are kept ready


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An engine and the ways to rank with it. `problem` says why nothing can be found at all."""

    engine: Engine
    problem: WordreelError | None = None
    _choices: Remembered[tuple[str, str | None, float | None], Choice] = field(
        default_factory=lambda: Remembered(CHOICES)
    )
    _made: Remembered[tuple[str, ...], object] = field(default_factory=lambda: Remembered(CHOICES))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, norm: str, bank: str | None, beta: float | None) -> Choice:
        """How a search ranks; worked out once for every combination that is asked for."""
        if self.problem is not None:
            raise self.problem
        key = (norm, bank, beta)
        known = self._choices.get(key)
        if known is None:
            with self._lock:
                known = self._choices.get(key)
                if known is None:
                    known = choose(self.engine, norm, bank, beta)
                    self._choices.put(key, known)
        return known

    def once(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        """What is expensive and stays the same for as long as the library does."""
        with self._making:
            known = self._made.get(key)
            if known is None:
                known = make()
                self._made.put(key, known)
        return known  # type: ignore[return-value]

    def passing(self, filters: Filters) -> int:
        """How many videos pass the filters."""
        return _passing(self, filters)


@lru_cache(64)
def _passing(snapshot: Snapshot, filters: Filters) -> int:
    return len(filters.paths(snapshot.engine.files, snapshot.engine.facts))


class Live:
    """The snapshot of now."""

    def __init__(self, store: LibraryStore, model: Model) -> None:
        self._store, self._model = store, model
        self._lock = threading.Lock()
        self._seen: object = None
        self.opened_at = 0.0
        self.now: Snapshot = self.reopen()

    def reopen(self) -> Snapshot:
        """Look at the library anew. Searches go on with the old snapshot until the new one is ready."""
        with self._lock:
            self._seen = self._version()
            problem: WordreelError | None = None
            try:
                check_fits(self._store, self._model)
            except WordreelError as error:
                problem = error
            made = Snapshot(Engine(self._store, self._model), problem)
            if problem is None and len(made.engine):
                made.choose("auto", None, None)  # the first search must not pay for it
            self.now = made
            self.opened_at = time.monotonic()
            return made

    def changed(self) -> bool:
        """Whether another process has written to the library since it was opened."""
        return self._version() != self._seen

    def forget_choices(self) -> None:
        """The banks have changed; the videos have not."""
        with self._lock:
            self.now = Snapshot(self.now.engine, self.now.problem)

    def _version(self) -> object:
        return self._store.catalogue.one("PRAGMA data_version")
