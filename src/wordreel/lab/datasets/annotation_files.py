"""Find a dataset's annotation files where people store them, and say what a missing one is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError, NextStep, UnsafePickle
from wordreel.lab.datasets.types import Missing
from wordreel.runtime import numpy_pickle
from wordreel.util.text_files import read_columns, read_lines

CAPTIONS_STEP = NextStep("get the captions again as JSON or plain lists, from a source you trust")
SUBFOLDERS = ("", "annotations", "captions", "structured-symlinks", "high-quality/structured-symlinks")


@dataclass(frozen=True)
class AnnotationFile:
    """A file of a dataset: what it is, the names it goes by, and what works without it."""

    what: str
    names: tuple[str, ...]
    without: str

    def __str__(self) -> str:
        return f"{self.what} ({' or '.join(self.names)})"


def find_file(folder: Path, file: AnnotationFile, subfolders: Sequence[str] = ()) -> Path | None:
    """The path of a file in a folder or its usual sub-folders; None if it is not there."""
    if not folder.is_dir():
        raise DatasetError(
            f"{folder} is not a folder", NextStep("give the folder that holds the dataset's files")
        )
    for name in file.names:
        for subfolder in (*SUBFOLDERS, *subfolders):
            if (path := folder / subfolder / name).is_file():
                return path
    return None


def require_file(folder: Path, file: AnnotationFile, subfolders: Sequence[str] = ()) -> Path:
    """The path of a file, or an error that says what it is, where it can be and what works without it."""
    path = find_file(folder, file, subfolders)
    if path is None:
        searched = ", ".join(sorted(name for name in {*SUBFOLDERS, *subfolders} if name))
        raise DatasetError(
            f"{file} not found in {folder} or its sub-folders {searched}. Without it: {file.without}"
        )
    return path


def missing_file(folder: Path, file: AnnotationFile) -> Missing:
    """A note on a file that is not there and not required."""
    return Missing(str(file), folder, file.without)


def read_id_list(path: Path, heading: Sequence[str] = ("video_id",)) -> list[str]:
    """Ids, one per line, or from the CSV column with one of these headings. Duplicates are an error."""
    ids: dict[str, int] = {}
    for number, item in _csv_column(path, tuple(heading)) if path.suffix == ".csv" else read_lines(path):
        item = item.strip()
        if item in ids:
            raise DatasetError(f"{path}, line {number}: {item!r} is listed twice, first in line {ids[item]}")
        ids[item] = number
    if not ids:
        raise DatasetError(f"{path} lists nothing")
    return list(ids)


def read_pickle(path: Path) -> Any:
    """Load the plain containers in a pickle; anything else in it is refused before it is loaded."""
    try:
        return numpy_pickle.load(path, encoding="latin1", next_step=CAPTIONS_STEP)
    except UnsafePickle as error:
        raise UnsafePickle(f"{path}: {error.message}", error.next_step) from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error


def check_split(dataset: str, split: str, splits: Iterable[str]) -> None:
    """Refuse a split that the dataset does not have."""
    names = list(splits)
    if split not in names:
        raise DatasetError(f"{dataset} has no split {split!r}; it has {', '.join(names)}")


def _csv_column(path: Path, heading: tuple[str, ...]) -> Iterable[tuple[int, str]]:
    for line, (item,) in read_columns(path, [heading]):
        yield line, item
