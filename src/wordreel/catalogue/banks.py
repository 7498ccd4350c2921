"""Query banks in the catalogue: named lists of queries, their source, and their last check."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordreel.errors import BankError, NextStep

if TYPE_CHECKING:
    from wordreel.catalogue.store import LibraryStore

LONGEST_NAME = 100
BUILD_A_BANK = NextStep("build a query bank", command="bank build", page="Settings → Ranking")
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
        digest = hashlib.sha256()
        for text in sorted(self.texts):
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class SavedCheck:
    """The result of the last check of a bank with one model."""

    bank: str
    fingerprint: str
    revision: str
    passed: bool
    report: dict[str, Any]
    checked_at: float


def normalize_queries(texts: Iterable[str]) -> list[str]:
    """Normalise white space and drop empty and duplicate queries; the order stays.

    >>> normalize_queries(["a  dog ", "", "a dog"])
    ['a dog']
    """
    return list(dict.fromkeys(clean for text in texts if (clean := " ".join(text.split()))))


def list_banks(store: LibraryStore) -> list[BankRow]:
    """Return every bank, by name."""
    return [BankRow(*row) for row in store.catalogue.rows(f"SELECT {_BANK} FROM banks ORDER BY name")]  # noqa: S608


def read_bank(store: LibraryStore, name: str) -> Bank:
    """Return a bank with its queries; raise a BankError that lists the others if there is none."""
    with store.catalogue.transaction(reading=True):
        row = store.catalogue.one("SELECT name, source, made_at FROM banks WHERE name = ?", name)
        if row is None:
            others = ", ".join(bank.name for bank in list_banks(store))
            if others:
                raise BankError(f"there is no bank {name!r}; there are: {others}")
            raise BankError(f"there is no bank {name!r}", BUILD_A_BANK)
        queries = store.catalogue.rows(
            "SELECT id, text, source FROM bank_queries WHERE bank = ? ORDER BY id", name
        )
    name, source, made_at = row
    return Bank(
        name,
        source,
        made_at,
        tuple(query[0] for query in queries),
        tuple(query[1] for query in queries),
        tuple(query[2] for query in queries),
    )


def create_bank(store: LibraryStore, name: str, texts: Iterable[str], source: str) -> Bank:
    """Create a bank; a BankError if the name is taken or there are no queries."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        raise BankError(f"{name!r} cannot name a bank", NextStep("use a short word without a slash"))
    sentences = normalize_queries(texts)
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
    """Add queries to a bank; returns how many are new."""
    before = len(read_bank(store, name))
    with store.writing(), store.catalogue.transaction():
        _insert(store, name, normalize_queries(texts), source)
    return len(read_bank(store, name)) - before


def remove_queries(store: LibraryStore, name: str, texts: Iterable[str]) -> int:
    """Remove queries from a bank; returns how many it had. A bank cannot become empty."""
    bank = read_bank(store, name)
    gone = set(normalize_queries(texts)) & set(bank.texts)
    if len(gone) == len(bank):
        raise BankError(
            f"that would leave bank {name!r} empty",
            NextStep(
                "delete the bank",
                command=f"bank remove {name} --all",
                page="Settings → Ranking",
            ),
        )
    with store.writing(), store.catalogue.transaction():
        store.catalogue.run_many(
            "DELETE FROM bank_queries WHERE bank = ? AND text = ?", [(name, text) for text in gone]
        )
    return len(gone)


def delete_bank(store: LibraryStore, name: str) -> None:
    """Delete a bank with all its queries and checks."""
    read_bank(store, name)
    with store.writing(), store.catalogue.transaction():
        store.catalogue.run("DELETE FROM banks WHERE name = ?", name)


def save_check(
    store: LibraryStore, bank: Bank, fingerprint: str, passed: bool, report: dict[str, Any]
) -> None:
    """Save a check; it replaces an earlier one with the same model."""
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


def read_check(store: LibraryStore, name: str, fingerprint: str) -> SavedCheck | None:
    """Return the last check of a bank with a model, perhaps of an earlier revision."""
    row = store.catalogue.one(
        "SELECT bank, fingerprint, revision, passed, report, checked_at FROM bank_checks "
        "WHERE bank = ? AND fingerprint = ?",
        name,
        fingerprint,
    )
    if row is None:
        return None
    bank, model, revision, passed, report, checked_at = row
    return SavedCheck(bank, model, revision, bool(passed), json.loads(report), checked_at)


def _insert(store: LibraryStore, name: str, texts: Sequence[str], source: str) -> None:
    store.catalogue.run_many(
        "INSERT OR IGNORE INTO bank_queries (bank, text, source) VALUES (?, ?, ?)",
        [(name, text, source) for text in texts],
    )
