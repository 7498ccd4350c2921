"""What every feature tree offers: features per expert, and the splits and captions beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from wordreel.errors import DatasetError, NextStep, WordreelError
from wordreel.lab.datasets.trees.feature_files import FeatureFile, RowFile
from wordreel.lab.datasets.trees.split_lists import unique_ids
from wordreel.lab.datasets.trees.track_conversion import as_rows, as_track
from wordreel.lab.datasets.types import Missing, Split
from wordreel.types import Absent, Float32, Track

WITHOUT_EXPERT = "the other experts; models trained with this one see it as absent everywhere"


@dataclass
class Tree(ABC):
    """One dataset in one published layout.

    Opening a tree lists file names only; a feature file is read when its first item is. A tree without
    features (CLIP4Clip's) has no `experts`, one without word features no `word_feature_names`.
    """

    kind: ClassVar[str]  # the layout: "ce", "teachtext", "mmt", "clip4clip" or "moee"

    root: Path
    dataset: str

    @property
    @abstractmethod
    def experts(self) -> Sequence[str]:
        """The names of the experts that have features here."""

    @property
    @abstractmethod
    def missing(self) -> Sequence[Missing]:
        """Files of the published layout that are not here."""

    def ids(self, expert: str) -> Sequence[str]:
        """Return the items in an expert's file, whether their features are present or absent."""
        raise self._no_features()

    def read(self, expert: str, item: str) -> Track | Absent:
        """Return one item's features; `Absent` where the file has NaN, an empty array or nothing."""
        raise self._no_features()

    def source(self, expert: str) -> str:
        """Return the file of an expert's features, in one line. It is part of their fingerprint."""
        raise self._no_features()

    def _no_features(self) -> DatasetError:
        step = NextStep("compute features from the videos", "add FOLDER")
        return DatasetError(f"{self.root} holds captions but no features", step)

    @property
    @abstractmethod
    def splits(self) -> Sequence[str]:
        """The names of the splits the tree lists."""

    @abstractmethod
    def split(self, name: str) -> Split:
        """Return one split with its captions; a tree without captions gives items without any."""

    def for_split(self, split: str) -> Self:
        """Return the tree with the features that the published code reads for a split; usually this one."""
        return self

    def caption_index(self, split: str) -> dict[str, int]:
        """Return item → the index of its one caption that counts in this split; empty where all count."""
        return {}

    @property
    def word_feature_names(self) -> Sequence[str]:
        """The names of the word features."""
        return ()

    def word_features(self, name: str, item: str) -> list[Float32]:
        """Return `[words, dim]` for each caption of an item; empty where the file does not have the item."""
        raise DatasetError(f"{self.root} has no word features {name!r}; it has {_listed(())}")


@dataclass
class FileTree(Tree):
    """A tree whose features are in files of many items each."""

    _opened: dict[str, list[FeatureFile | RowFile]] = field(default_factory=dict, repr=False)

    @abstractmethod
    def open_files(self, expert: str) -> list[FeatureFile | RowFile]:
        """Return the files with an expert's features; none if there are none."""

    def open_word_files(self, name: str) -> list[FeatureFile | RowFile]:
        """Return the files with word features of one name; none if there are none."""
        return []

    def convert(self, expert: str, item: str, file: FeatureFile | RowFile) -> Track | Absent:
        """Return the features of an item that is in a file."""
        return as_track(file[item])

    def ids(self, expert: str) -> Sequence[str]:
        """Return the items in an expert's files, in their order."""
        return unique_ids(file.ids for file in self._files(expert))

    def read(self, expert: str, item: str) -> Track | Absent:
        """Return one item's features."""
        files = self._files(expert)
        for file in files:
            if item in file:
                try:
                    return self.convert(expert, item, file)
                except DatasetError as error:
                    raise DatasetError(f"{item} in {file.path}: {error.message}", error.next_step) from None
        return Absent(f"not in {files[0].path.name}")

    def source(self, expert: str) -> str:
        """Return the names and sizes of an expert's files."""
        paths = [file.path for file in self._files(expert)]
        return ", ".join(f"{path.relative_to(self.root)}, {path.stat().st_size} bytes" for path in paths)

    def word_features(self, name: str, item: str) -> list[Float32]:
        """Return `[words, dim]` for each caption of an item."""
        if name not in self.word_feature_names:
            raise DatasetError(
                f"{self.root} has no word features {name!r}; it has {_listed(self.word_feature_names)}"
            )
        key = f"words of {name}"
        if key not in self._opened:
            self._opened[key] = self.open_word_files(name)
        for file in self._opened[key]:
            if item in file:
                value = file[item]
                is_one_caption = isinstance(file, RowFile) and not isinstance(value, list)
                return [_word_rows(rows, item) for rows in ([value] if is_one_caption else value)]
        return []

    def _files(self, expert: str) -> list[FeatureFile | RowFile]:
        if expert not in self._opened:
            files = self.open_files(expert)
            if not files:
                raise DatasetError(f"{self.root} has no expert {expert!r}; it has {_listed(self.experts)}")
            self._opened[expert] = files
        return self._opened[expert]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _word_rows(value: Any, item: str) -> Float32:
    """Return `[words, dim]` of one caption; `[0, 0]` where the file has NaN."""
    try:
        rows = as_rows(value)
    except WordreelError as error:
        raise DatasetError(f"word features of {item}: {error.message}", error.next_step) from None
    return np.zeros((0, 0), np.float32) if rows is None else rows.astype(np.float32)
