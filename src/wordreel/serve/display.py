"""What files are called when people read it, and where their pictures and bytes are asked for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from urllib.parse import urlencode

from wordreel.library.store import LibraryStore

LONGEST = 255
MAX_FOLDERS = 100


def display_path(path: str) -> str:
    """A path as text that JSON can hold; bytes that are no text are shown escaped.

    >>> display_path("/films/\\udcff.mp4")
    '/films/\\\\xff.mp4'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def display_name(path: str, uploaded: dict[str, str] | None = None) -> str:
    """A file's own name; of an upload, what its sender called it."""
    name = PurePath(path).name
    return (uploaded or {}).get(name) or display_path(name)


def safe_name(name: str) -> str:
    r"""A name as a stranger gave it, made harmless: no folders, nothing that does not print.

    >>> safe_name("../../etc/pass\nwd"), safe_name("C:\\films\\a.mp4"), safe_name("..")
    ('passwd', 'a.mp4', 'upload')
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    clean = "".join(c for c in last if c.isprintable()).strip()[:LONGEST]
    return clean if clean.strip(". ") else "upload"


def uploaded_names(store: LibraryStore) -> dict[str, str]:
    """What every upload was called, by the hash of its bytes."""
    return dict(store.catalogue.rows("SELECT content, name FROM uploads"))


def largest_folders(paths: Iterable[str], library: str) -> list[str]:
    """The folders that hold files, the fullest first, without those of the library itself.

    >>> largest_folders(["/a/1.mp4", "/b/2.mp4", "/b/3.mp4", "/lib/uploads/4"], "/lib")
    ['/b', '/a']
    """
    found = Counter(path.rpartition("/")[0] or "/" for path in paths if not path.startswith(f"{library}/"))
    return [display_path(folder) for folder, _ in found.most_common(MAX_FOLDERS)]


def thumb_url(content: str, second: float) -> str:
    return f"/api/thumb/{content}?{urlencode({'t': f'{second:.2f}'})}"


def preview_url(content: str, start: float, end: float) -> str:
    return f"/api/preview/{content}?{urlencode({'start': f'{start:.2f}', 'end': f'{end:.2f}'})}"


def media_url(content: str) -> str:
    return f"/media/{content}"
