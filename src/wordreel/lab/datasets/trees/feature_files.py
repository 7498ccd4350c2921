"""Feature files: item → value, from a pickle, an `.npy` file or a hickle file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import DatasetError, NextStep, UnsafePickle
from wordreel.lab.datasets.trees.hdf5 import MAGIC
from wordreel.lab.datasets.trees.hickle import read_hickle
from wordreel.runtime import numpy_pickle

MAX_BYTES = 32 * 2**30  # word features of a whole dataset are this large
REFUSED_STEP = NextStep("get the file again with plain arrays and text only, from a source you trust")
SUFFIXES = (".pickle", ".pkl", ".hickle", ".hkl", ".npy")


def read_value(path: Path) -> Any:
    """Load a pickle, an `.npy` file or a hickle file. Nothing in it is executed."""
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from None
    if head == MAGIC:
        return read_hickle(path, MAX_BYTES)
    try:
        if head.startswith(b"\x93NUMPY"):
            return _read_npy(path)
        # latin1, because Python 2 pickles store the bytes of arrays as text.
        return numpy_pickle.load(path, encoding="latin1", max_bytes=MAX_BYTES, next_step=REFUSED_STEP)
    except UnsafePickle as error:
        raise UnsafePickle(f"{path}: {error.message}", error.next_step) from None
    except (ValueError, OSError, EOFError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Load a file that maps ids to values; ids that are numbers or bytes become text."""
    content = read_value(path)
    if not isinstance(content, Mapping):
        raise DatasetError(f"{path} holds a {type(content).__name__}, not a mapping of ids to values")
    return {_as_id(key): value for key, value in content.items()}


def _as_id(key: Any) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


class FeatureFile:
    """One file's values by item id, loaded on first use.

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


def _read_npy(path: Path) -> Any:
    with path.open("rb") as file:
        shape, dtype = numpy_pickle.read_npy_header(file, path.name)
    if dtype.hasobject:
        return numpy_pickle.read_numpy_pickle(
            path, encoding="latin1", max_bytes=MAX_BYTES, next_step=REFUSED_STEP
        )
    return np.empty(shape, dtype) if 0 in shape else np.load(path, mmap_mode="r", allow_pickle=False)
