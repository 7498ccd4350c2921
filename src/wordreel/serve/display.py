"""How files are displayed: names, paths, folders, and the URLs of their pictures and bytes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

LONGEST = 255
MAX_FOLDERS = 100


def display_path(path: str) -> str:
    """A path as text that JSON can hold; bytes that are not text are escaped.

    >>> display_path("/films/\\udcff.mp4")
    '/films/\\\\xff.mp4'
    """
    if path.isascii():  # as nearly every one
        return path
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def display_name(path: str, uploaded: dict[str, str] | None = None) -> str:
    """The name of a file; of an upload, the name its sender gave it."""
    name = path.rstrip("/").rpartition("/")[2]
    return (uploaded or {}).get(name) or display_path(name)


def safe_name(name: str) -> str:
    r"""The name of an uploaded file without folders and unprintable characters.

    >>> safe_name("../../etc/pass\nwd"), safe_name("C:\\films\\a.mp4"), safe_name("..")
    ('passwd', 'a.mp4', 'upload')
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    clean = "".join(c for c in last if c.isprintable()).strip()[:LONGEST]
    return clean if clean.strip(". ") else "upload"


def largest_folders(paths: Iterable[str], library: str) -> list[str]:
    """The folders with the most files, without those of the library itself.

    >>> largest_folders(["/a/1.mp4", "/b/2.mp4", "/b/3.mp4", "/lib/uploads/4"], "/lib")
    ['/b', '/a']
    """
    folders = Counter(path.rpartition("/")[0] or "/" for path in paths if not path.startswith(f"{library}/"))
    return [display_path(folder) for folder, _ in folders.most_common(MAX_FOLDERS)]


def thumb_url(content: str, second: float) -> str:
    return f"/api/thumb/{content}?t={second:.2f}"


def preview_url(content: str, start: float, end: float) -> str:
    return f"/api/preview/{content}?start={start:.2f}&end={end:.2f}"


def media_url(content: str) -> str:
    return f"/media/{content}"
