"""Finding a dataset's files where people keep them, and saying of a missing one what it is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordreel.datasets.text import columns, lines, rows
from wordreel.datasets.types import Missing
from wordreel.errors import DatasetError, NextStep, UnsafePickle
from wordreel.weights import safe_pickle

CAPTIONS_STEP = NextStep("get the captions again as JSON or plain lists, from a source you trust")
USUAL = ("", "annotations", "captions", "structured-symlinks", "high-quality/structured-symlinks")


@dataclass(frozen=True)
class Wanted:
    """A file of a dataset: what it is, the names it goes by, and what works without it."""

    what: str
    names: tuple[str, ...]
    without: str

    def __str__(self) -> str:
        return f"{self.what} ({' or '.join(self.names)})"


def look(folder: Path, wanted: Wanted, places: Sequence[str] = ()) -> Path | None:
    """The file, in the folder or in a usual sub-folder of it; None where it is not."""
    if not folder.is_dir():
        raise DatasetError(f"{folder} is not a folder; give the one that holds the dataset's files")
    for name in wanted.names:
        for place in (*USUAL, *places):
            if (path := folder / place / name).is_file():
                return path
    return None


def find(folder: Path, wanted: Wanted, places: Sequence[str] = ()) -> Path:
    """The file, or an error that says what it is, where it was looked for and what works without it."""
    path = look(folder, wanted, places)
    if path is None:
        looked = ", ".join(sorted(place for place in {*USUAL, *places} if place))
        raise DatasetError(
            f"{wanted} not found in {folder} or its sub-folders {looked}. Without: {wanted.without}"
        )
    return path


def missing(folder: Path, wanted: Wanted) -> Missing:
    """A note on a file that is not there and not needed."""
    return Missing(str(wanted), folder, wanted.without)


def read_list(path: Path, heading: Iterable[str] = ("video_id",)) -> list[str]:
    """Ids, one a line, or the column of a CSV file that has one of these headings; none may stand twice."""
    found: dict[str, int] = {}
    for number, name in _csv_column(path, tuple(heading)) if path.suffix == ".csv" else lines(path):
        name = name.strip()
        if name in found:
            raise DatasetError(
                f"{path}, line {number}: {name!r} is listed twice, first in line {found[name]}"
            )
        found[name] = number
    if not found:
        raise DatasetError(f"{path} lists nothing")
    return list(found)


def read_pickle(path: Path) -> Any:
    """The plain containers in a pickle; anything else in it is refused unread."""
    try:
        return safe_pickle.load(path, encoding="latin1", next_step=CAPTIONS_STEP)
    except UnsafePickle as error:
        raise UnsafePickle(f"{path}: {error.message}", error.next_step) from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error


def known_split(dataset: str, split: str, splits: Iterable[str]) -> None:
    """Refuse a split that the dataset does not have."""
    names = list(splits)
    if split not in names:
        raise DatasetError(f"{dataset} has no split {split!r}; it has {', '.join(names)}")


def _csv_column(path: Path, heading: tuple[str, ...]) -> Iterable[tuple[int, str]]:
    found = rows(path)
    for number, header in found:
        (place,) = columns(path, number, header, [heading])
        for row_number, row in found:
            if len(row) <= place:
                raise DatasetError(f"{path}, line {row_number}: no {heading[0]!r} in this line")
            yield row_number, row[place]
