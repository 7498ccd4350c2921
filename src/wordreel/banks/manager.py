"""`Library.banks`: the verbs of `wordreel bank`, from Python."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from wordreel.banks import everyday
from wordreel.banks.check import CHECKED_METHODS, BankCheck, check
from wordreel.banks.choose_scoring import AUTO, Scoring, choose_scoring
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.query_embeddings import FOLDER, Progress, bank_cache_dir
from wordreel.banks.sources import builtin
from wordreel.errors import HubnessError
from wordreel.hubness import State
from wordreel.library import banks as kept
from wordreel.library.banks import Bank, BankRow, CheckRow

if TYPE_CHECKING:
    from wordreel.api import Library


class BankManager:
    """The query banks of one library."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._chosen: dict[tuple[str, str | None, float | None], tuple[object, Scoring]] = {}

    def list(self) -> list[BankRow]:
        return kept.list_banks(self._library.store)

    def show(self, name: str) -> Bank:
        return kept.read_bank(self._library.store, name)

    def last_check(self, name: str) -> CheckRow | None:
        """The last check with the library's model, also if the bank has changed since."""
        return kept.read_check(self._library.store, name, self._library.model.fingerprint)

    def build(self, name: str, texts: Iterable[str], source: str, progress: Progress | None = None) -> Bank:
        """A new bank, embedded at once."""
        bank = kept.make_bank(self._library.store, name, texts, source)
        EmbeddedBank.open(self._library.searcher(), bank, progress)
        self._chosen.clear()
        return bank

    def begin(self) -> None:
        """Give a new library the bank of everyday queries, so that its hits have a confidence."""
        if not self.list() and len(self._library.searcher()):
            found = builtin()
            self.build(everyday.NAME, found.texts, found.source)

    def add(self, name: str, texts: Iterable[str], source: str) -> int:
        """More queries for a bank; returns how many are new."""
        added = kept.add_queries(self._library.store, name, texts, source)
        self.keep_current(name)
        return added

    def drop(self, name: str, texts: Iterable[str]) -> int:
        """Take queries out of a bank; returns how many it had."""
        dropped = kept.drop_queries(self._library.store, name, texts)
        self.keep_current(name)
        return dropped

    def forget(self, name: str) -> None:
        """Forget a whole bank."""
        store = self._library.store
        kept.forget_bank(store, name)
        self._chosen.clear()
        for folder in (store.cache / FOLDER).glob(
            f"*/{bank_cache_dir(store, self._library.model, name).name}"
        ):
            shutil.rmtree(folder, ignore_errors=True)

    def check(
        self,
        name: str,
        captions: Mapping[str, Sequence[str]],
        methods: Sequence[str] = CHECKED_METHODS,
        beta: float | None = None,
        progress: Progress | None = None,
    ) -> BankCheck:
        """Measure a bank on captions of videos in the library, and remember the verdict."""
        searcher = self._library.searcher()
        bank = self.show(name)
        report = check(EmbeddedBank.open(searcher, bank), captions, methods, beta, progress)
        kept.keep_check(self._library.store, bank, searcher.model.fingerprint, report.passed, asdict(report))
        self._chosen.clear()
        return report

    def choose(
        self,
        norm: str = AUTO,
        bank: str | None = None,
        beta: float | None = None,
        progress: Progress | None = None,
    ) -> Scoring:
        """How a search ranks. Kept for as long as the library's index is the same."""
        searcher = self._library.searcher()
        key = (norm, bank, beta)
        if key not in self._chosen or self._chosen[key][0] is not searcher:
            self._chosen[key] = (searcher, choose_scoring(searcher, norm, bank, beta, progress))
        return self._chosen[key][1]

    def keep_current(self, name: str | None = None) -> None:
        """Bring every fitted state up to date with the banks and the videos: nothing is fitted anew that can
        follow."""
        self._chosen.clear()
        for row in self.list():
            if name is not None and row.name != name:
                continue
            work = EmbeddedBank.open(self._library.searcher(), self.show(row.name))
            folder = bank_cache_dir(self._library.store, self._library.model, row.name)
            for path in sorted(folder.glob("*-*.safetensors")):
                with suppress(HubnessError):  # a damaged cache is made anew when it is asked for
                    work.fit(State.load(path).method)
