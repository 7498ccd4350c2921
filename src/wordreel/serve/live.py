"""What keeps a server current: its model and searcher, swapped when the library changes, and its replica.

A search sees the old searcher or the new one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from wordreel.banks.choose_scoring import choose_scoring
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import check_model_fits, embedding_cache, outdated_error
from wordreel.embed.embedding_cache import read_manifest
from wordreel.errors import NextStep, WordreelError
from wordreel.library import Library
from wordreel.maintain.publication import published_generation
from wordreel.models.base import Model
from wordreel.models.model_store import in_use, open_model
from wordreel.runtime.store import WeightStore
from wordreel.search.query import Query
from wordreel.search.searcher import AnalyseFile, Searcher, refuse_file
from wordreel.serve.problems import Problem
from wordreel.util.lru_cache import LRUCache
from wordreel.util.server_address import ServerAddress, parse_published

T = TypeVar("T")

log = logging.getLogger("wordreel.serve")
CACHED = 32  # computed values
FOLLOW_EVERY = 5.0  # seconds


class CurrentModel:
    """`now` is the library's model as of the latest call; `problem` says why it is not the chosen one."""

    def __init__(self, store: LibraryStore, weights: WeightStore, model: Model) -> None:
        self._store, self._weights = store, weights
        self._lock = threading.Lock()
        self.key = in_use(store)  # what `wordreel use` takes
        self.now = model
        self.problem: WordreelError | None = None

    def __call__(self) -> Model:
        """Return the library's model. If it cannot be opened, the old one stays."""
        with self._lock:
            key = in_use(self._store)
            if key != self.key:
                self.key = key
                try:
                    model = open_model(self._store, self._weights)
                except WordreelError as error:
                    self.problem = WordreelError(
                        f"another model was chosen, but {self.now.name!r} still answers: {error.message}",
                        error.next_step,
                    )
                else:
                    self.now, self.problem = model, None
            return self.now


@dataclass(frozen=True, eq=False)
class LiveState:
    """A searcher and what keeps it from finding everything.

    `problem` says why it cannot search at all, `missing` how many clips its model has not embedded, and
    `outdated` what it cannot read of the others.
    """

    searcher: Searcher
    problem: WordreelError | Problem | None = None
    missing: int = 0
    outdated: WordreelError | None = None
    _values: LRUCache[tuple[str, ...], object] = field(default_factory=lambda: LRUCache(CACHED))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self) -> Searcher:
        """Return the searcher; raise the problem where an empty answer would be misleading."""
        if self.problem is not None:
            raise self.problem
        return self.searcher

    def cached(self, key: tuple[str, ...], compute: Callable[[], T]) -> T:
        """Return a value that is expensive and stays the same as long as the library does."""
        with self._lock:
            known = self._values.get(key)
            if known is None:
                known = compute()
                self._values.put(key, known)
        return known  # type: ignore[return-value]


class LiveSearcher:
    """The state of now.

    `current_model` returns the model that the library uses at the moment, and `index_server` the vector
    server that searches it, if any.
    """

    def __init__(
        self,
        store: LibraryStore,
        current_model: Callable[[], Model],
        analyse: AnalyseFile = refuse_file,
        read_only: bool = False,
        index_server: Callable[[], ServerAddress | None] = lambda: None,
    ) -> None:
        self._store, self._current_model, self._analyse = store, current_model, analyse
        self._read_only, self._index_server = read_only, index_server
        self._lock = threading.Lock()
        self._version_opened: object = None
        self.opened_at = 0.0
        self.now: LiveState = self.reopen()

    def reopen(self) -> LiveState:
        """Open the library again. Searches use the old searcher until the new one is ready."""
        with self._lock:
            model = self._current_model()
            self._version_opened = self._version(model)
            searcher = Searcher.open(
                self._store, model, choose_scoring, self._analyse, self._index_server(), resident=True
            )
            missing = len(embedding_cache(self._store, model).missing())
            problem, outdated = self._problem(searcher, missing), outdated_error(self._store, model)
            state = LiveState(searcher, problem, missing, outdated)
            if state.problem is None and len(searcher):
                # So that the first search does not wait for the bank, nor for what a model loads lazily.
                searcher.search(Query("anything", limit=1))
            self.now = state
            self.opened_at = time.monotonic()
        return state

    def changed(self) -> bool:
        """Return whether another process has written to the library since it was opened.

        Videos, banks and the choice of a model are in the catalogue, embeddings are not.
        """
        return self._version(self.now.searcher.model) != self._version_opened

    def banks_changed(self) -> None:
        """Choose scorings again: the banks have changed, the videos have not."""
        with self._lock:
            now = self.now
            self.now = LiveState(now.searcher.with_new_banks(), now.problem, now.missing, now.outdated)

    def _version(self, model: Model) -> object:
        return self._store.data_version(), read_manifest(embedding_cache(self._store, model).folder)

    def _problem(self, searcher: Searcher, missing: int) -> WordreelError | Problem | None:
        try:
            check_model_fits(self._store, searcher.model)
        except WordreelError as error:
            return error
        if missing and not len(searcher):
            return self.not_embedded(searcher, missing)
        return None

    def not_embedded(self, searcher: Searcher, missing: int) -> Problem:
        """Say which clips a search cannot return yet, and what to do about it."""
        what = f"{missing} of {missing + len(searcher)}" if len(searcher) else f"all {missing}"
        message = f"{what} moments are not yet prepared for the model {searcher.model.name!r}"
        if self._read_only:
            step = NextStep("prepare them", command=f"use {in_use(self._store)}")
        else:
            step = NextStep("wait for the work that prepares them", page="Library")
        return Problem(409, "not_embedded", message, next_step=step)


class Follower:
    """Asks for the published generation every few seconds and follows it; searches go on meanwhile.

    It writes through a connection of its own: the server notices a change as one by another program.
    """

    def __init__(self, path: Path, address: str, weights: WeightStore, every: float = FOLLOW_EVERY) -> None:
        self._path, self._address, self._weights, self._every = path, address, weights, every
        self._seen = -1
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def check(self) -> bool:
        """Follow what is published if it is new; return whether it was."""
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
