"""Folders that may be added: a browser within the allowed roots, and what people write for a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wordreel.ingest.plan import EXTENSIONS
from wordreel.serve.display import display_path
from wordreel.serve.problems import Problem

MOST = 1_000  # entries of one folder that are looked at


@dataclass(frozen=True)
class FolderListing:
    """One folder: the folders in it, and how many of its files look like media (`files`)."""

    path: Path
    parent: Path | None  # None at a root
    folders: tuple[Path, ...]
    files: int


def allowed_path(roots: Sequence[Path], library: Path, requested: str, private: bool = True) -> Path:
    """Return a path below one of the roots once all links are followed; raise a `Problem` for others.

    `~` is the home of the server's user. With `private`, what is outside of the roots has one answer whether
    it is there or not: nobody learns what else the disk holds.
    """
    path = Path(os.path.realpath(os.path.expanduser(requested)))  # noqa: PTH111
    real = [Path(os.path.realpath(root)) for root in roots]
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
        name = display_path(str(path))
        raise Problem(
            404, "no_folder", f"there is no folder {name}; check how it is written", "path"
        ) from None
    if not readable:
        name = display_path(str(path))
        raise Problem(403, "no_access", f"wordreel may not read {name}; change its permissions", "path")


def list_folder(roots: Sequence[Path], library: Path, requested: str, private: bool = True) -> FolderListing:
    """List the folders inside of one by name, without hidden ones, links and the library itself."""
    path = allowed_path(roots, library, requested, private)
    folders, files = [], 0
    try:
        with os.scandir(path) as entries:
            for _, entry in zip(range(MOST), entries, strict=False):
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False) and Path(entry.path) != library:
                    folders.append(Path(entry.path))
                elif entry.is_file() and Path(entry.name).suffix.lower() in EXTENSIONS:
                    files += 1
    except OSError:
        raise Problem(404, "no_folder", "this folder cannot be read", "path") from None
    inside = any(path != root and path.is_relative_to(root) for root in map(_real, roots))
    return FolderListing(
        path,
        path.parent if inside else None,
        tuple(sorted(folders, key=lambda one: one.name.casefold())),
        files,
    )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
