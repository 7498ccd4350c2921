"""The names of uploaded files; the files themselves lie under the hash of their bytes."""

from __future__ import annotations

import time

from wordreel.catalogue.store import LibraryStore


def save_upload_name(store: LibraryStore, content: str, name: str) -> None:
    """Remember what an upload is called."""
    store.catalogue.run("INSERT OR REPLACE INTO uploads VALUES (?, ?, ?)", content, name, time.time())


def delete_upload_name(store: LibraryStore, content: str) -> None:
    """Forget what an upload is called."""
    store.catalogue.run("DELETE FROM uploads WHERE content = ?", content)


def upload_names(store: LibraryStore) -> dict[str, str]:
    """Return what every upload is called, by the hash of its bytes."""
    return dict(store.catalogue.rows("SELECT content, name FROM uploads"))
