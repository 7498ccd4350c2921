"""The open index, exchanged as a whole when the library has changed: a search sees the old one or the new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from wordreel.banks.choose_scoring import Scoring, choose_scoring
from wordreel.errors import NextStep, WordreelError
from wordreel.library.embeddings import read_manifest
from wordreel.library.store import LibraryStore
from wordreel.lru_cache import LRUCache
from wordreel.models.base import Model
from wordreel.models.kept import in_use
from wordreel.search.embedding import embedding_cache
from wordreel.search.filters import Filters
from wordreel.search.fitting import check_model_fits
from wordreel.search.searcher import Searcher
from wordreel.serve.problems import Problem

T = TypeVar("T")

CHOICES = 32  # ways to rank that are kept ready


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An searcher and the ways to rank with it. `problem` says why nothing can be found at all; `missing`
    counts the clips that its model has not embedded."""

    searcher: Searcher
    problem: WordreelError | Problem | None = None
    missing: int = 0
    _choices: LRUCache[tuple[str, str | None, float | None], Scoring] = field(
        default_factory=lambda: LRUCache(CHOICES)
    )
    _made: LRUCache[tuple[str, ...], object] = field(default_factory=lambda: LRUCache(CHOICES))
    _passed: LRUCache[Filters, int] = field(default_factory=lambda: LRUCache(CHOICES))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def check(self) -> None:
        """Say so where an empty answer would only look like one."""
        if self.problem is not None:
            raise self.problem

    def choose(self, norm: str, bank: str | None, beta: float | None) -> Scoring:
        """How a search ranks; worked out once for every combination that is asked for."""
        self.check()
        key = (norm, bank, beta)
        known = self._choices.get(key)
        if known is None:
            with self._lock:
                known = self._choices.get(key)
                if known is None:
                    known = choose_scoring(self.searcher, norm, bank, beta)
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
        known = self._passed.get(filters)
        if known is None:
            known = len(filters.paths(self.searcher.files, self.searcher.facts))
            self._passed.put(filters, known)
        return known


class Live:
    """The snapshot of now. `look` gives the model that the library uses at the moment."""

    def __init__(self, store: LibraryStore, look: Callable[[], Model], read_only: bool = False) -> None:
        self._store, self._look, self._read_only = store, look, read_only
        self._lock = threading.Lock()
        self._seen: object = None
        self.opened_at = 0.0
        self.now: Snapshot = self.reopen()

    def reopen(self) -> Snapshot:
        """Look at the library anew. Searches go on with the old snapshot until the new one is ready."""
        with self._lock:
            model = self._look()
            self._seen = self._version(model)
            searcher = Searcher(self._store, model)
            missing = max(0, len(self._store.clip_ids()) - len(searcher))
            made = Snapshot(searcher, self._problem(searcher, missing), missing)
            if made.problem is None and len(searcher):
                made.choose("auto", None, None)  # the first search must not pay for it,
                searcher.search("anything", 1)  # nor for what a model loads when it is first asked
            self.now = made
            self.opened_at = time.monotonic()
            return made

    def changed(self) -> bool:
        """Whether another process has written to the library since it was opened.

        Videos, banks and the choice of a model are in the catalogue, embeddings are not.
        """
        return self._version(self.now.searcher.model) != self._seen

    def forget_choices(self) -> None:
        """The banks have changed; the videos have not."""
        with self._lock:
            self.now = Snapshot(self.now.searcher, self.now.problem, self.now.missing)

    def _version(self, model: Model) -> object:
        written = self._store.catalogue.one("PRAGMA data_version")
        return written, read_manifest(embedding_cache(self._store, model).folder)

    def _problem(self, searcher: Searcher, missing: int) -> WordreelError | Problem | None:
        try:
            check_model_fits(self._store, searcher.model)
        except WordreelError as error:
            return error
        if missing and not len(searcher):
            return self.not_embedded(searcher, missing)
        return None

    def not_embedded(self, searcher: Searcher, missing: int) -> Problem:
        """Which clips a search cannot return yet, and what to do about it."""
        what = f"{missing} of {missing + len(searcher)} clips" if len(searcher) else f"all {missing} clips"
        message = f"{what} must be embedded by the model {searcher.model.name!r} before they can be found"
        if self._read_only:
            step = NextStep("embed them", command=f"use {in_use(self._store)}")
        else:
            step = NextStep("wait for the job that embeds them", page="Library")
        return Problem(409, "not_embedded", message, next_step=step)
