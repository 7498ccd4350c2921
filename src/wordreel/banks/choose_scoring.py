"""Which bank and which method a search uses.

`auto` uses a bank only if its last check, with this model and these very queries, passed; then with the
method and parameters that the check chose. A method given by name is used as given, with a note if no check
speaks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wordreel.catalogue.banks import BUILD_A_BANK, BankRow, SavedCheck, list_banks, read_bank, read_check
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import BankError, NextStep
from wordreel.progress import ProgressCallback
from wordreel.search.query import check_norm
from wordreel.search.query_fields import AUTO
from wordreel.search.scoring import Note, Scoring
from wordreel.search.searcher import Searcher

if TYPE_CHECKING:
    from wordreel.banks.embedded_bank import EmbeddedBank
    from wordreel.hubness import Method


def choose_scoring(
    searcher: Searcher,
    norm: str = AUTO,
    bank: str | None = None,
    beta: float | None = None,
    on_progress: ProgressCallback | None = None,
) -> Scoring:
    """Return the scoring for a query's norm, bank and beta; embed queries that are not embedded yet."""
    store = searcher.store
    check_norm(norm)
    name = bank or _preferred(store, searcher, list_banks(store))
    if name is None:
        if norm not in (AUTO, "none"):
            raise BankError(f"the normalisation {norm!r} needs a query bank", BUILD_A_BANK)
        return Scoring()
    from wordreel.banks.embedded_bank import EmbeddedBank

    embedded = EmbeddedBank.open(searcher, read_bank(store, name), on_progress)
    check = read_check(store, name, searcher.model.fingerprint)
    changed = check is not None and check.revision != embedded.bank.revision
    if changed:
        check = None
    confidence = embedded.confidence()
    if norm == "none":
        return Scoring(confidence=confidence)
    proven = check is not None and check.passed
    if norm != AUTO:
        doubt = None if proven else _unproven(name, changed, check is not None, "may make results worse")
        return Scoring(embedded.norm(method_for(embedded, norm, beta, check)), confidence, doubt)
    if check is not None and check.passed:
        from wordreel.hubness import make_method

        method = make_method(check.report["method"], **check.report["parameters"])
        return Scoring(embedded.norm(method), confidence)
    return Scoring(confidence=confidence, note=_unproven(name, changed, check is not None, "is not used"))


def method_for(
    embedded: EmbeddedBank, name: str, beta: float | None = None, check: SavedCheck | None = None
) -> Method:
    """Return a method with its β: as given, as the bank's check chose it, or by the label-free rule."""
    from wordreel.banks.embedded_bank import unlabelled_beta
    from wordreel.hubness import METHODS, make_method

    if "beta" not in METHODS[name].__dataclass_fields__:
        if beta is not None:
            raise BankError(f"{name!r} has no beta", NextStep("leave beta out"))
        return make_method(name)
    if beta is None and check is not None:
        chosen = check.report.get("betas", {}).get(name)
        beta = None if chosen is None else float(chosen)
    return make_method(name, beta=unlabelled_beta(embedded) if beta is None else beta)


def _preferred(store: LibraryStore, searcher: Searcher, banks: Sequence[BankRow]) -> str | None:
    """Return the bank whose check passed last; otherwise the largest."""
    passed = [
        (check.checked_at, row.name)
        for row in banks
        if (check := read_check(store, row.name, searcher.model.fingerprint)) is not None and check.passed
    ]
    if passed:
        return max(passed)[1]
    return max(banks, key=lambda row: (row.size, row.name)).name if banks else None


def _unproven(bank: str, changed: bool, checked: bool, so: str) -> Note:
    step = NextStep("check it with captions", command=f"bank check {bank} --captions FILE")
    if changed:
        return Note(f"bank {bank!r} has changed since its check and {so}", step)
    if checked:
        return Note(f"bank {bank!r} did not help when it was checked and {so}")
    return Note(f"bank {bank!r} has not been checked with this model and {so}", step)
