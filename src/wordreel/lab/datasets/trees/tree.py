"""The interface of every feature tree: features per expert, and the splits and captions beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from wordreel.lab.datasets.types import Missing, Split
from wordreel.types import Absent, Float32, Track


class Tree(Protocol):
    """One dataset in one published layout.

    Opening a tree lists file names only; a feature file is read when its first item is. A tree without
    features (CLIP4Clip's) has no `experts`, one without word features no `word_feature_names`.
    """

    @property
    def kind(self) -> str:
        """The layout: "ce", "teachtext", "mmt", "clip4clip" or "moee"."""
        ...

    @property
    def dataset(self) -> str: ...

    @property
    def root(self) -> Path: ...

    @property
    def experts(self) -> Sequence[str]: ...

    @property
    def missing(self) -> Sequence[Missing]:
        """Files of the published layout that are not here."""
        ...

    def ids(self, expert: str) -> Sequence[str]:
        """The items in an expert's file, whether their features are present or absent."""
        ...

    def read(self, expert: str, item: str) -> Track | Absent:
        """One item's features; `Absent` where the file has NaN, an empty array or nothing."""
        ...

    @property
    def splits(self) -> Sequence[str]:
        """The names of the splits the tree lists."""
        ...

    def split(self, name: str) -> Split:
        """One split with its captions; a tree without captions gives items without any."""
        ...

    def for_split(self, split: str) -> Tree:
        """The tree with the features that the published code reads for a split; usually this one."""
        ...

    def caption_index(self, split: str) -> dict[str, int]:
        """Item → the index of its one caption that counts in this split; empty where all count."""
        ...

    @property
    def word_feature_names(self) -> Sequence[str]: ...

    def word_features(self, name: str, item: str) -> list[Float32]:
        """`[words, dim]` for each caption of an item; empty where the file does not have the item."""
        ...

    def source(self, expert: str) -> str:
        """The file an expert's features come from, in one line. It is part of their fingerprint."""
        ...
