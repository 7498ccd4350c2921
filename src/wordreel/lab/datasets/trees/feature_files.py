"""Feature files: item → value, loaded when the first value is asked for; and their published names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import DatasetError
from wordreel.lab.datasets.array_files import read_mapping, read_value

PUBLISHED: dict[str, Any] = tomllib.loads(
    (resources.files("wordreel.lab.datasets.trees") / "published_files.toml").read_text(encoding="utf-8")
)
"""Layout → the names of the files that its tree reads."""
SUFFIXES = (".pickle", ".pkl", ".hickle", ".hkl", ".npy")


class FeatureFile:
    """A file of values by item id.

    `aliases` maps item ids to other ids that the file may use for them.
    """

    def __init__(self, path: Path, aliases: Mapping[str, str] | None = None) -> None:
        self.path = path
        self._aliases = aliases or {}

    @cached_property
    def _values(self) -> dict[str, Any]:
        return read_mapping(self.path)

    @property
    def ids(self) -> list[str]:
        """Item ids in the file's order, aliases resolved."""
        items = {alias: item for item, alias in self._aliases.items()}
        return [items.get(name, name) for name in self._values]

    def __contains__(self, item: str) -> bool:
        return item in self._values or self._aliases.get(item) in self._values

    def __getitem__(self, item: str) -> Any:
        return self._values[item] if item in self._values else self._values[self._aliases[item]]


class RowFile:
    """A file with one value per item, in order; an item's id is its split and row: `test-7`."""

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        self.split = split

    @cached_property
    def _values(self) -> Any:
        values = read_value(self.path)
        if not isinstance(values, np.ndarray | list) or (isinstance(values, np.ndarray) and values.ndim == 0):
            raise DatasetError(f"{self.path} holds no rows of features")
        return values

    @property
    def ids(self) -> list[str]:
        """Item ids in the file's order."""
        return [f"{self.split}-{row}" for row in range(len(self._values))]

    def __contains__(self, item: str) -> bool:
        split, _, row = item.rpartition("-")
        return split == self.split and row.isdecimal() and int(row) < len(self._values)

    def __getitem__(self, item: str) -> Any:
        return self._values[int(item.rpartition("-")[2])]
