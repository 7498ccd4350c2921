"""A dataset's annotation files: what `annotation_files.toml` says of them, and where they are in a folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.split_builder import build_split
from wordreel.lab.datasets.types import Caption, Missing, Split
from wordreel.util.text_files import read_columns, read_lines

SUBFOLDERS = ("", "annotations", "captions", "structured-symlinks", "high-quality/structured-symlinks")


@dataclass(frozen=True)
class AnnotationFile:
    """A file of a dataset: what it is, the names it goes by, and what works without it."""

    what: str
    names: tuple[str, ...]
    without: str

    def __str__(self) -> str:
        return f"{self.what} ({' or '.join(self.names)})"


@dataclass(frozen=True)
class PublishedDataset:
    """A dataset as it is published.

    `files` are by key; `folders` are the sub-folders that its archives make; `aliases` are other names of
    splits.
    """

    name: str
    title: str
    splits: tuple[str, ...]
    files: Mapping[str, AnnotationFile]
    folders: tuple[str, ...]
    aliases: Mapping[str, str]


def published_datasets() -> dict[str, PublishedDataset]:
    """Return every dataset of the table, by name."""
    table = resources.files("wordreel.lab.datasets") / "annotation_files.toml"
    content = tomllib.loads(table.read_text(encoding="utf-8"))
    return {
        name: PublishedDataset(
            name,
            entry["title"],
            tuple(entry["splits"]),
            dict(_files(entry["files"], entry.get("per", entry["splits"]))),
            tuple(entry["folders"]),
            entry.get("aliases", {}),
        )
        for name, entry in content.items()
    }


def _files(rows: Iterable[Any], splits: Sequence[str]) -> Iterator[tuple[str, AnnotationFile]]:
    for key, what, names, without in rows:
        for split in splits if "{split}" in key else [""]:
            filled = [text.format(split=split) for text in (key, what, *names)]
            yield filled[0], AnnotationFile(filled[1], tuple(filled[2:]), without)


@dataclass(frozen=True)
class AnnotationFolder:
    """The folder in which a person has the annotation files of a dataset."""

    dataset: PublishedDataset
    folder: Path

    def find(self, key: str) -> Path | None:
        """Return the path of a file in the folder or its usual sub-folders; None if it is not there."""
        if not self.folder.is_dir():
            raise DatasetError(
                f"{self.folder} is not a folder", NextStep("give the folder that holds the dataset's files")
            )
        for name in self.dataset.files[key].names:
            for subfolder in (*SUBFOLDERS, *self.dataset.folders):
                if (path := self.folder / subfolder / name).is_file():
                    return path
        return None

    def require(self, key: str) -> Path:
        """Return the path of a file, or raise an error that says what it is and what works without it."""
        path = self.find(key)
        if path is None:
            file = self.dataset.files[key]
            searched = ", ".join(sorted(filter(None, {*SUBFOLDERS, *self.dataset.folders})))
            raise DatasetError(
                f"{file} not found in {self.folder} or its sub-folders {searched}. Without it: {file.without}"
            )
        return path

    def missing(self, key: str) -> Missing:
        """Return the note on a file that is not there and not required."""
        file = self.dataset.files[key]
        return Missing(str(file), self.folder, file.without)

    def build(
        self,
        split: str,
        ids: Iterable[str],
        captions: Mapping[str, Sequence[Caption]],
        source: Path,
        paths: Mapping[str, str] | None = None,
        missing: Iterable[Missing] = (),
    ) -> Split:
        """Return a split of this dataset (`build_split`)."""
        return build_split(self.dataset.name, split, ids, captions, source, paths, missing)


def read_id_list(path: Path) -> list[str]:
    """Return ids, one per line, or from the column `video_id` of a CSV file. Duplicates are an error."""
    ids: dict[str, int] = {}
    is_table = path.suffix == ".csv"
    rows = ((line, cells[0]) for line, cells in read_columns(path, [("video_id",)]))
    for number, item in rows if is_table else read_lines(path):
        item = item.strip()
        if item in ids:
            raise DatasetError(f"{path}, line {number}: {item!r} is listed twice, first in line {ids[item]}")
        ids[item] = number
    if not ids:
        raise DatasetError(f"{path} lists nothing")
    return list(ids)
