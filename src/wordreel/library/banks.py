"""Query banks in the catalogue: named lists of sentences, where they came from, and their last check."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordreel.errors import BankError, NextStep

if TYPE_CHECKING:
    from wordreel.library.store import LibraryStore

LONGEST_NAME = 100
BUILD_A_BANK = NextStep("build a query bank", command="bank build", page="Hubness (POST /api/banks)")
_BANK = "name, source, made_at, (SELECT count(*) FROM bank_queries q WHERE q.bank = name)"


@dataclass(frozen=True)
class BankRow:
    """A bank without its queries."""

    name: str
    source: str
    made_at: float
    size: int


@dataclass(frozen=True)
class Bank:
    """A bank with its queries, in the order they came. Ids are never used twice."""

    name: str
    source: str
    made_at: float
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def revision(self) -> str:
        """Names the queries: two banks with the same sentences have the same revision."""
        seen = hashlib.sha256()
        for text in sorted(self.texts):
            seen.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return seen.hexdigest()[:16]


@dataclass(frozen=True)
class CheckRow:
    """What the last check of a bank with one model said."""

    bank: str
    fingerprint: str
    revision: str
    passed: bool
    report: dict[str, Any]
    checked_at: float


def tidy(texts: Iterable[str]) -> list[str]:
    """Sentences with single spaces, empty ones and repetitions left out, in their order.

    >>> tidy(["a  dog ", "", "a dog"])
    ['a dog']
    """
    return list(dict.fromkeys(clean for text in texts if (clean := " ".join(text.split()))))


def list_banks(store: LibraryStore) -> list[BankRow]:
    """Every bank, by name."""
    return [BankRow(*row) for row in store.catalogue.rows(f"SELECT {_BANK} FROM banks ORDER BY name")]  # noqa: S608


def read_bank(store: LibraryStore, name: str) -> Bank:
    """A bank with its queries; an error that names the others if there is none."""
    with store.catalogue.transaction(reading=True):
        row = store.catalogue.one("SELECT name, source, made_at FROM banks WHERE name = ?", name)
        if row is None:
            others = ", ".join(bank.name for bank in list_banks(store))
            if others:
                raise BankError(f"there is no bank {name!r}; there are: {others}")
            raise BankError(f"there is no bank {name!r}", BUILD_A_BANK)
        found = store.catalogue.rows(
            "SELECT id, text, source FROM bank_queries WHERE bank = ? ORDER BY id", name
        )
    name, source, made_at = row
    return Bank(
        name,
        source,
        made_at,
        tuple(query[0] for query in found),
        tuple(query[1] for query in found),
        tuple(query[2] for query in found),
    )


def make_bank(store: LibraryStore, name: str, texts: Iterable[str], source: str) -> Bank:
    """A new bank; an error if the name is taken or there is nothing to put in."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        raise BankError(f"{name!r} cannot name a bank; use a short word without a slash")
    sentences = tidy(texts)
    if not sentences:
        raise BankError(f"{source} holds no queries; a bank needs at least one")
    with store.writing(), store.catalogue.transaction():
        if store.catalogue.one("SELECT 1 FROM banks WHERE name = ?", name):
            raise BankError(
                f"there is a bank {name!r} already", NextStep("add to it", command=f"bank add {name} …")
            )
        store.catalogue.run("INSERT INTO banks VALUES (?, ?, ?)", name, source, time.time())
        _insert(store, name, sentences, source)
    return read_bank(store, name)


def add_queries(store: LibraryStore, name: str, texts: Iterable[str], source: str) -> int:
    """Put more queries into a bank; those it has are left alone. Returns how many are new."""
    before = len(read_bank(store, name))
    with store.writing(), store.catalogue.transaction():
        _insert(store, name, tidy(texts), source)
    return len(read_bank(store, name)) - before


def drop_queries(store: LibraryStore, name: str, texts: Iterable[str]) -> int:
    """Take queries out of a bank. Returns how many were there; the last one stays."""
    bank = read_bank(store, name)
    gone = set(tidy(texts)) & set(bank.texts)
    if len(gone) == len(bank):
        raise BankError(
            f"that would leave bank {name!r} empty",
            NextStep(
                "delete the bank",
                command=f"bank drop {name} --all",
                page=f"Hubness (DELETE /api/banks/{name})",
            ),
        )
    with store.writing(), store.catalogue.transaction():
        store.catalogue.run_many(
            "DELETE FROM bank_queries WHERE bank = ? AND text = ?", [(name, text) for text in gone]
        )
    return len(gone)


def forget_bank(store: LibraryStore, name: str) -> None:
    """Forget a bank with all its queries and checks."""
    read_bank(store, name)
    with store.writing(), store.catalogue.transaction():
        store.catalogue.run("DELETE FROM banks WHERE name = ?", name)


def keep_check(
    store: LibraryStore, bank: Bank, fingerprint: str, passed: bool, report: dict[str, Any]
) -> None:
    """Remember a check; an earlier one with the same model is replaced."""
    with store.writing(), store.catalogue.transaction():
        store.catalogue.run(
            "INSERT OR REPLACE INTO bank_checks VALUES (?, ?, ?, ?, ?, ?)",
            bank.name,
            fingerprint,
            bank.revision,
            int(passed),
            json.dumps(report),
            time.time(),
        )


def read_check(store: LibraryStore, name: str, fingerprint: str) -> CheckRow | None:
    """The last check of a bank with a model, also of an earlier revision of it."""
    row = store.catalogue.one(
        "SELECT bank, fingerprint, revision, passed, report, checked_at FROM bank_checks "
        "WHERE bank = ? AND fingerprint = ?",
        name,
        fingerprint,
    )
    if row is None:
        return None
    bank, model, revision, passed, report, checked_at = row
    return CheckRow(bank, model, revision, bool(passed), json.loads(report), checked_at)


def _insert(store: LibraryStore, name: str, texts: Sequence[str], source: str) -> None:
    store.catalogue.run_many(
        "INSERT OR IGNORE INTO bank_queries (bank, text, source) VALUES (?, ?, ?)",
        [(name, text, source) for text in texts],
    )
