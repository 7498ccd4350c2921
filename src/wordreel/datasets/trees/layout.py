"""What every tree is: features expert by expert, and the splits and captions that lie beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from wordreel.datasets.types import Features, Split


class Tree(Features, Protocol):
    """One dataset in one published layout. Opening it reads names of files, not the files.

    `experts` may be empty: CLIP4Clip's folders hold captions and videos only.
    """

    @property
    def kind(self) -> str:
        """The layout's name: "ce", "teachtext", "mmt", "clip4clip" or "moee"."""
        ...

    @property
    def dataset(self) -> str: ...

    @property
    def root(self) -> Path: ...

    @property
    def splits(self) -> Sequence[str]:
        """The names of the splits that the tree lists."""
        ...

    def split(self, name: str) -> Split:
        """One split with its captions; without any where the tree has none."""
        ...

    def for_split(self, split: str) -> Tree:
        """The tree with the features that the published code reads for a split; usually the same tree."""
        ...

    def source(self, expert: str) -> str:
        """Where an expert's features come from, in one line: another file has another one."""
        ...
