"""`Library.banks`: everything `wordreel bank` does, from Python."""

from __future__ import annotations

import builtins
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from wordreel.banks.check import CHECKED_METHODS, BankCheck, check_bank
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.fitted_states import FitBank
from wordreel.banks.query_embeddings import FOLDER, bank_cache_dir
from wordreel.banks.sources import EVERYDAY, builtin
from wordreel.catalogue import banks as bank_store
from wordreel.catalogue.banks import Bank, BankRow, SavedCheck
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import HubnessError
from wordreel.hubness import State
from wordreel.models.base import Model
from wordreel.progress import ProgressCallback
from wordreel.search.searcher import Searcher


class BankManager:
    """The query banks of one library. `on_change` is called after every change, before it is used."""

    def __init__(
        self,
        store: LibraryStore,
        model: Callable[[], Model],
        searcher: Callable[[], Searcher],
        on_change: Callable[[], None],
    ) -> None:
        self._store, self._model, self._searcher, self._on_change = store, model, searcher, on_change

    def list(self) -> builtins.list[BankRow]:
        """Return every bank with its size and source."""
        return bank_store.list_banks(self._store)

    def show(self, name: str) -> Bank:
        """Return a bank with its queries."""
        return bank_store.read_bank(self._store, name)

    def last_check(self, name: str) -> SavedCheck | None:
        """Return the last check with the library's model, also if the bank has changed since."""
        return bank_store.read_check(self._store, name, self._model().fingerprint)

    def build(
        self, name: str, texts: Iterable[str], source: str, on_progress: ProgressCallback | None = None
    ) -> Bank:
        """Create a bank and embed it."""
        bank = bank_store.create_bank(self._store, name, texts, source)
        EmbeddedBank.open(self._searcher(), bank, on_progress)
        self._on_change()
        return bank

    def build_everyday(self) -> None:
        """Give a new library the bank of everyday queries, so that its hits have a confidence."""
        if not self.list() and len(self._searcher()):
            queries = builtin()
            self.build(EVERYDAY, queries.texts, queries.source)

    def add(self, name: str, texts: Iterable[str], source: str) -> int:
        """Add queries to a bank; returns how many are new."""
        added = bank_store.add_queries(self._store, name, texts, source)
        self.update(name)
        return added

    def remove(self, name: str, texts: Iterable[str]) -> int:
        """Remove queries from a bank; returns how many it had."""
        removed = bank_store.remove_queries(self._store, name, texts)
        self.update(name)
        return removed

    def delete(self, name: str) -> None:
        """Delete a whole bank and what is cached for it."""
        bank_store.delete_bank(self._store, name)
        self._on_change()
        folder = bank_cache_dir(self._store, self._model(), name).name
        for cached in (self._store.cache / FOLDER).glob(f"*/{folder}"):
            shutil.rmtree(cached, ignore_errors=True)

    def check(
        self,
        name: str,
        captions: Mapping[str, Sequence[str]],
        methods: Sequence[str] = CHECKED_METHODS,
        beta: float | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> BankCheck:
        """Measure a bank on captions of videos in the library, and store the verdict."""
        searcher = self._searcher()
        bank = self.show(name)
        result = check_bank(EmbeddedBank.open(searcher, bank), captions, methods, beta, on_progress)
        fingerprint = searcher.model.fingerprint
        bank_store.save_check(self._store, bank, fingerprint, result.passed, asdict(result))
        self._on_change()
        return result

    def update(self, name: str | None = None, fit: FitBank | None = None) -> None:
        """Bring the fitted states of a bank, or of all, up to date with its queries and the videos.

        `fit` does what must be fitted from the start somewhere else than in this process.
        """
        self._on_change()
        if not len(self._searcher()):
            return  # nothing to fit to; with the first video they are fitted from the start
        for row in self.list():
            if name is not None and row.name != name:
                continue
            embedded = EmbeddedBank.open(self._searcher(), self.show(row.name))
            folder = bank_cache_dir(self._store, self._model(), row.name)
            for path in sorted(folder.glob("*-*.safetensors")):
                with suppress(HubnessError):  # a damaged cache is fitted again when it is needed
                    embedded.fit(State.load(path).method, fit)
