"""File names are bytes. Inside wordreel they are `str` with surrogate escapes; in the catalogue, BLOBs."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

IMPORTED = "dataset:"  # items of a dataset have no file: their path is `dataset:NAME/id`


def settle(path: str | os.PathLike[str]) -> str:
    """The one spelling of a path: absolute, its folder resolved, its own name kept.

    A link to a file stays itself (its name may be the only meaningful one); a link to a folder that was
    named on purpose becomes that folder.
    """
    absolute = Path(os.path.normpath(Path.cwd() / path))
    if absolute.is_dir():
        return os.path.realpath(absolute)
    return str(Path(os.path.realpath(absolute.parent)) / absolute.name)


def imported_path(dataset: str, item: str) -> str:
    """The path of an item that was imported without a file; ids that no path can hold are escaped.

    >>> imported_path("MSVD", "vid12"), imported_path("LSMDC", "0001_Juno/a.b"), imported_path("X", "../y")
    ('dataset:MSVD/vid12', 'dataset:LSMDC/0001_Juno/a.b', 'dataset:X/%2E%2E%2Fy')
    """
    odd = any(part in ("", ".", "..") for part in item.split("/")) or "\0" in item
    if odd:
        item = quote(item, safe="", errors="surrogatepass").replace(".", "%2E") or "%"
    return f"{IMPORTED}{dataset}/{item}"


def is_imported(path: str) -> bool:
    return path.startswith(IMPORTED)


def named(path: str | os.PathLike[str]) -> str:
    """The one spelling of a path that may also be an imported item's, or a whole imported dataset's."""
    text = os.fspath(path)
    return text.rstrip("/") if is_imported(text) else settle(path)


def exists(path: str) -> bool:
    """Whether something is there, or may be: a folder that may not be looked into does not count as gone.

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


def stored(path: str | Path) -> bytes:
    return os.fsencode(path)


def shown(path: bytes) -> str:
    return os.fsdecode(path)


def inside(folder: str) -> tuple[bytes, bytes]:
    """Bounds `[low, high)` that hold exactly the stored paths below a folder: "/" is followed by "0".

    >>> low, high = inside("/films")
    >>> low <= b"/films/a.mp4" < high, low <= b"/films2/a.mp4" < high
    (True, False)
    """
    base = stored(folder).rstrip(b"/")
    return base + b"/", base + b"0"
