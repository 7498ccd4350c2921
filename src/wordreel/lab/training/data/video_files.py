"""Pairs of captions and files: what models that read frames train on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NextStep, TrainingError
from wordreel.lab.datasets.types import Caption, Split
from wordreel.lab.training.data.pairs import Pairs


def files_of_folder(folder: Path) -> dict[str, Path]:
    """Return every file under a folder by its name, with and without suffix; the first by path counts."""
    if not folder.is_dir():
        raise TrainingError(f"there is no folder {folder}")
    found: dict[str, Path] = {}
    for parent, folders, names in os.walk(folder):
        folders.sort()
        _put(found, (Path(parent) / name for name in sorted(names)))
    return found


def files_of_library(library: Path) -> dict[str, Path]:
    """Return every file of a library by its name, with and without suffix."""
    found: dict[str, Path] = {}
    _put(found, (Path(file.path) for file in LibraryStore.open(library).files()))
    return found


def pair_files(split: Split, files: Mapping[str, Path] | None, share: float = 1.0) -> Pairs:
    """Return the items of a split whose file exists; without `files`, those whose captions name a file."""
    found: dict[str, tuple[Path, tuple[Caption, ...]]] = {}
    for item in split.items:
        captions = tuple(caption for caption in item.captions if caption.text.strip())
        path = _file(item.id, item.path, files)
        if path is not None and captions:
            found[item.id] = path, captions
    name = f"{split.dataset} {split.name}"
    if not found:
        raise TrainingError(
            f"{name}: no captioned video has a file",
            NextStep(
                "name the folder of the videos, whose files are named by id", "train videos … --videos DIR"
            ),
        )
    paths, sentences = zip(*found.values(), strict=True)
    missing = len(split.items) - len(found)
    return Pairs(name, tuple(found), {}, sentences, shares=(share,), missing=missing, paths=paths)


def _put(found: dict[str, Path], paths: Iterable[Path]) -> None:
    for path in paths:
        found.setdefault(path.name, path)
        found.setdefault(path.stem, path)


def _file(name: str, named: str | None, files: Mapping[str, Path] | None) -> Path | None:
    if files is None:
        return Path(named) if named is not None and Path(named).is_file() else None
    return files.get(name) or (files.get(Path(named).name) if named else None)
