"""What the owner of a library decided, by name."""

from __future__ import annotations

from wordreel.library.store import LibraryStore


def read_setting(store: LibraryStore, name: str) -> str | None:
    """The value of a setting; None where nobody decided."""
    row = store.catalogue.one("SELECT value FROM settings WHERE name = ?", name)
    return str(row[0]) if row else None


def write_setting(store: LibraryStore, name: str, value: str) -> None:
    """Decide: one statement, so that a kill leaves the old value or the new one."""
    with store.writing():
        store.catalogue.run(
            "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value,
        )
