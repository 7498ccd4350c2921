"""Folders that may be added: a browser within the allowed roots, and what people write for a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wordreel.ingest.plan import EXTENSIONS
from wordreel.serve.display import display_path
from wordreel.serve.problems import Problem

MAX_ENTRIES = 1_000  # entries of one folder that are looked at


@dataclass(frozen=True)
class FolderEntry:
    """A folder as it is shown."""

    path: str
    name: str


@dataclass(frozen=True)
class FolderListing:
    """The folders in one folder, and how many of its files look like media.

    `path` is None for the list of roots, and `parent` at a root.
    """

    path: str | None
    parent: str | None
    folders: list[FolderEntry]
    files: int


def allowed_path(roots: Sequence[Path], library: Path, requested: str, private: bool = True) -> Path:
    """Return a path below one of the roots, all links followed; raise a `Problem` for every other.

    `~` is the home of the server's user. With `private`, what is outside of the roots has one answer whether
    it is there or not: nobody learns what else the disk holds.
    """
    path = Path(os.path.realpath(os.path.expanduser(requested)))  # noqa: PTH111
    real = [_real(root) for root in roots]
    allowed = any(path.is_relative_to(root) for root in real) and not path.is_relative_to(library)
    if allowed or not private:
        _check_there(path)
    if allowed:
        return path
    where = ", ".join(display_path(str(root)) for root in real)
    if not where:
        raise Problem(403, "outside_roots", "no folder may be added from here; drop files instead", "path")
    raise Problem(403, "outside_roots", f"only folders inside of these may be added: {where}", "path")


def _check_there(path: Path) -> None:
    """Raise a `Problem` for what is not there and for what may not be read, each its own."""
    try:
        path.stat()
        readable = os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK)
    except PermissionError:
        readable = False
    except (OSError, ValueError):  # missing, or a name that is too long for the file system
        message = f"there is no folder {display_path(str(path))}; check how it is written"
        raise Problem(404, "no_folder", message, "path") from None
    if not readable:
        name = display_path(str(path))
        raise Problem(403, "no_access", f"wordreel may not read {name}; change its permissions", "path")


def list_folder(roots: Sequence[Path], library: Path, requested: str, private: bool = True) -> FolderListing:
    """List the folders inside of one, by name, without hidden ones, links and the library itself."""
    path = allowed_path(roots, library, requested, private)
    folders, files = [], 0
    try:
        with os.scandir(path) as entries:
            for _, entry in zip(range(MAX_ENTRIES), entries, strict=False):
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False) and Path(entry.path) != library:
                    folders.append(Path(entry.path))
                elif entry.is_file() and Path(entry.name).suffix.lower() in EXTENSIONS:
                    files += 1
    except OSError:
        raise Problem(404, "no_folder", "this folder cannot be read", "path") from None
    inside = any(path != root and path.is_relative_to(root) for root in map(_real, roots))
    shown = [
        FolderEntry(display_path(str(folder)), display_path(folder.name))
        for folder in sorted(folders, key=lambda folder: folder.name.casefold())
    ]
    return FolderListing(
        display_path(str(path)), display_path(str(path.parent)) if inside else None, shown, files
    )


def list_roots(roots: Sequence[Path]) -> FolderListing:
    """Return the roots themselves."""
    shown = [display_path(str(root)) for root in roots]
    return FolderListing(None, None, [FolderEntry(root, root) for root in shown], 0)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
