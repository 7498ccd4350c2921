"""File names are bytes. In memory they are `str` with surrogate escapes; in the catalogue, BLOBs."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from wordreel.errors import LibraryError, NextStep
from wordreel.media.capture_date import capture_date

VERIFY = NextStep("look for damage", "verify")
IMPORTED = "dataset:"  # imported items have no file: their path is `dataset:NAME/id`


def canonical_path(path: str | os.PathLike[str]) -> str:
    """Return the one spelling of a path: absolute, its parent resolved, its own name unchanged.

    A link to a file keeps its own name (it may be the only meaningful one); a link to a folder becomes that
    folder.
    """
    absolute = Path(os.path.normpath(Path.cwd() / path))
    if "\0" in str(absolute):
        raise LibraryError(f"{str(path)!r:.200} is not a path: it has a zero byte in it")
    if os.path.isdir(absolute):  # noqa: PTH112 - Path.is_dir raises where the name is too long
        return os.path.realpath(absolute)
    return str(Path(os.path.realpath(absolute.parent)) / absolute.name)


def imported_path(dataset: str, item: str) -> str:
    """Return the path of an item imported without a file; ids that no path can hold are escaped.

    >>> imported_path("MSVD", "vid12"), imported_path("LSMDC", "0001_Juno/a.b"), imported_path("X", "../y")
    ('dataset:MSVD/vid12', 'dataset:LSMDC/0001_Juno/a.b', 'dataset:X/%2E%2E%2Fy')
    """
    odd = any(part in ("", ".", "..") for part in item.split("/")) or "\0" in item
    if odd:
        item = quote(item, safe="", errors="surrogatepass").replace(".", "%2E") or "%"
    return f"{IMPORTED}{dataset}/{item}"


def is_imported(path: str) -> bool:
    """Return whether a path is that of an item imported without a file."""
    return path.startswith(IMPORTED)


def file_date(path: str, mtime_ns: int, recorded: str | None) -> tuple[str, str]:
    """Return when a file was recorded and where that was read; empty text for imported items.

    >>> file_date("/films/VID-20190714-WA0003.mp4", 0, None)
    ('2019-07-14', 'file name')
    """
    if is_imported(path):
        return "", ""
    captured = capture_date(recorded or "", path, mtime_ns / 1e9)
    return captured.date, captured.source


def library_path(path: str | os.PathLike[str]) -> str:
    """Return the one spelling of a path in the library: of a file, an imported item or a dataset."""
    text = os.fspath(path)
    return text.rstrip("/") if is_imported(text) else canonical_path(path)


def may_exist(path: str) -> bool:
    """Return False only if a file is certainly gone: one in an unreadable folder may exist.

    Imported items have no file that could be gone.
    """
    if is_imported(path):
        return True
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def absent_folder(path: str) -> str | None:
    """Return the topmost folder above a missing file that is not there now; None if its own folder is.

    The disk may be unplugged, or the folder was moved. An empty folder counts: it may be a mount point.
    """
    folder = Path(path).parent
    try:
        with os.scandir(folder) as entries:
            return str(folder) if next(entries, None) is None else None
    except OSError:
        pass
    while not may_exist(str(folder.parent)):
        folder = folder.parent
    return str(folder)


def to_blob(path: str | Path) -> bytes:
    """Return a path as the catalogue stores it."""
    return os.fsencode(path)


def from_blob(path: bytes) -> str:
    """Return a path from the catalogue."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise LibraryError(f"the catalogue holds {path!r:.40} for a path", VERIFY) from None


def prefix_bounds(folder: str) -> tuple[bytes, bytes]:
    """Return bounds `[low, high)` of exactly the stored paths below a folder.

    "/" is followed by "0".

    >>> low, high = prefix_bounds("/films")
    >>> low <= b"/films/a.mp4" < high, low <= b"/films2/a.mp4" < high
    (True, False)
    """
    base = to_blob(folder).rstrip(b"/")
    return base + b"/", base + b"0"
