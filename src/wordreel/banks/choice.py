"""Which bank and which method a search uses.

`auto` uses a bank only if its last check, with this model and these very queries, passed; then with the
method and parameters that the check chose. A method asked for by name is used as asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wordreel.banks.beta import label_free
from wordreel.banks.embedded import Progress
from wordreel.banks.norms import BankAtWork, check_searchable
from wordreel.errors import BankError
from wordreel.hubness import METHODS, Method, make
from wordreel.library.banks import BankRow, CheckRow, list_banks, read_bank, read_check
from wordreel.library.store import LibraryStore
from wordreel.search.engine import Engine
from wordreel.search.norm import PLAIN, ConfidenceOf, Norm

AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Choice:
    """How to rank, with which bank, and a word on why where it may surprise."""

    norm: Norm = PLAIN
    confidence: ConfidenceOf | None = None
    note: str = ""


def choose(
    engine: Engine,
    asked: str = AUTO,
    bank: str | None = None,
    beta: float | None = None,
    progress: Progress | None = None,
) -> Choice:
    """The ranking for `--norm ASKED --bank BANK --beta BETA`; `progress` hears of queries being embedded."""
    store = engine.store
    banks = list_banks(store)
    if asked != AUTO:
        check_searchable(asked)
    name = bank or _preferred(store, engine, banks)
    if name is None:
        if asked not in (AUTO, "none"):
            raise BankError(f"--norm {asked} needs a query bank; `wordreel bank build` makes one")
        return Choice()
    opened = BankAtWork.open(engine, read_bank(store, name), progress)
    check = read_check(store, name, engine.model.fingerprint)
    if check is not None and check.revision != opened.bank.revision:
        changed, check = True, None
    else:
        changed = False
    sure = opened.confidence()
    if asked == "none":
        return Choice(confidence=sure)
    if asked != AUTO:
        return Choice(opened.norm(method_for(opened, asked, beta, check)), sure)
    if check is not None and check.passed:
        return Choice(opened.norm(make(check.report["method"], **check.report["parameters"])), sure)
    return Choice(confidence=sure, note=_why_plain(name, changed, check is not None))


def method_for(
    work: BankAtWork, name: str, beta: float | None = None, check: CheckRow | None = None
) -> Method:
    """A method with its β: as given, as the bank's check chose it, or by the label-free rule."""
    if "beta" not in METHODS[name].__dataclass_fields__:
        if beta is not None:
            raise BankError(f"{name!r} has no beta; leave --beta out")
        return make(name)
    if beta is None and check is not None:
        chosen = check.report.get("betas", {}).get(name)
        beta = None if chosen is None else float(chosen)
    return make(name, beta=label_free(work) if beta is None else beta)


def _preferred(store: LibraryStore, engine: Engine, banks: Sequence[BankRow]) -> str | None:
    """The bank whose check passed last; otherwise the largest."""
    passed = [
        (check.checked_at, row.name)
        for row in banks
        if (check := read_check(store, row.name, engine.model.fingerprint)) is not None and check.passed
    ]
    if passed:
        return max(passed)[1]
    return max(banks, key=lambda row: (row.size, row.name)).name if banks else None


def _why_plain(bank: str, changed: bool, checked: bool) -> str:
    command = f"`wordreel bank check {bank} --captions FILE`"
    if changed:
        return f"plain ranking: bank {bank!r} has changed since its check; {command} checks it again"
    if checked:
        return f"plain ranking: bank {bank!r} did not help when it was checked"
    return f"plain ranking: bank {bank!r} has not been checked with this model; {command} does it"
