"""Which bank and which method a search uses.

`auto` uses a bank only if its last check, with this model and these very queries, passed; then with the
method and parameters that the check chose. A method asked for by name is used as asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wordreel.banks.beta import unlabelled_beta
from wordreel.banks.embedded_bank import EmbeddedBank, check_searchable
from wordreel.banks.query_embeddings import Progress
from wordreel.errors import BankError, NextStep
from wordreel.hubness import METHODS, Method, make_method
from wordreel.library.banks import BUILD_A_BANK, BankRow, CheckRow, list_banks, read_bank, read_check
from wordreel.library.store import LibraryStore
from wordreel.search.scoring import PLAIN, ConfidenceFunction, FittedNorm
from wordreel.search.searcher import Searcher

AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Scoring:
    """How to rank and with which bank; `note` says why, where that may surprise, `next_step` what to do."""

    norm: FittedNorm = PLAIN
    confidence: ConfidenceFunction | None = None
    note: str = ""
    next_step: NextStep | None = None


def choose_scoring(
    searcher: Searcher,
    asked: str = AUTO,
    bank: str | None = None,
    beta: float | None = None,
    progress: Progress | None = None,
) -> Scoring:
    """The ranking for `--norm ASKED --bank BANK --beta BETA`; `progress` hears of queries being embedded."""
    store = searcher.store
    banks = list_banks(store)
    if asked != AUTO:
        check_searchable(asked)
    name = bank or _preferred(store, searcher, banks)
    if name is None:
        if asked not in (AUTO, "none"):
            raise BankError(f"the normalisation {asked!r} needs a query bank", BUILD_A_BANK)
        return Scoring()
    opened = EmbeddedBank.open(searcher, read_bank(store, name), progress)
    check = read_check(store, name, searcher.model.fingerprint)
    if check is not None and check.revision != opened.bank.revision:
        changed, check = True, None
    else:
        changed = False
    sure = opened.confidence()
    if asked == "none":
        return Scoring(confidence=sure)
    if asked != AUTO:
        return Scoring(opened.norm(method_for(opened, asked, beta, check)), sure)
    if check is not None and check.passed:
        return Scoring(opened.norm(make_method(check.report["method"], **check.report["parameters"])), sure)
    note, next_step = _why_plain(name, changed, check is not None)
    return Scoring(PLAIN, sure, note, next_step)


def method_for(
    work: EmbeddedBank, name: str, beta: float | None = None, check: CheckRow | None = None
) -> Method:
    """A method with its β: as given, as the bank's check chose it, or by the label-free rule."""
    if "beta" not in METHODS[name].__dataclass_fields__:
        if beta is not None:
            raise BankError(f"{name!r} has no beta", NextStep("leave beta out"))
        return make_method(name)
    if beta is None and check is not None:
        chosen = check.report.get("betas", {}).get(name)
        beta = None if chosen is None else float(chosen)
    return make_method(name, beta=unlabelled_beta(work) if beta is None else beta)


def _preferred(store: LibraryStore, searcher: Searcher, banks: Sequence[BankRow]) -> str | None:
    """The bank whose check passed last; otherwise the largest."""
    passed = [
        (check.checked_at, row.name)
        for row in banks
        if (check := read_check(store, row.name, searcher.model.fingerprint)) is not None and check.passed
    ]
    if passed:
        return max(passed)[1]
    return max(banks, key=lambda row: (row.size, row.name)).name if banks else None


def _why_plain(bank: str, changed: bool, checked: bool) -> tuple[str, NextStep | None]:
    check = NextStep("check it with captions", command=f"bank check {bank} --captions FILE")
    if changed:
        return f"plain ranking: bank {bank!r} has changed since its check", check
    if checked:
        return f"plain ranking: bank {bank!r} did not help when it was checked", None
    return f"plain ranking: bank {bank!r} has not been checked with this model", check
