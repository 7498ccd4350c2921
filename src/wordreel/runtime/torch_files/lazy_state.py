"""Named arrays that are read when they are used, so that a checkpoint is never in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import NextStep, WeightsCorrupt, WeightsError
from wordreel.types import Array


class LazyState(Mapping[str, Array]):
    """A mapping from names to arrays that are read at every access.

    >>> LazyState({"twos": lambda: np.full(3, 2.0)})["twos"].sum()
    np.float64(6.0)
    """

    def __init__(self, readers: Mapping[str, Callable[[], Array]]) -> None:
        self._readers = dict(readers)

    def __getitem__(self, key: str) -> Array:
        reader = self._readers[key]
        try:
            return reader()
        except (IndexError, TypeError, ValueError) as error:  # a reader that splits or transposes
            raise WeightsError(f"{key} does not have the shape of such a weight: {error}") from None
        except AttributeError as error:  # a type that NumPy does not have
            raise WeightsError(f"{key} is of a type that is not read: {error}") from None

    def __contains__(self, key: object) -> bool:
        return key in self._readers

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def open_safetensors(*paths: Path) -> LazyState:
    """The arrays of one safetensors file, or of the parts of one; bfloat16 as float32."""
    from safetensors import SafetensorError, safe_open

    readers: dict[str, Callable[[], Array]] = {}
    for path in paths:
        try:
            file: Any = safe_open(str(path), framework="np")
        except (SafetensorError, OSError) as error:
            raise WeightsCorrupt(
                f"{path.name} is not a complete safetensors file: {error}", NextStep("download it again")
            ) from None
        for key in file.keys():  # noqa: SIM118
            if key in readers:
                raise WeightsError(f"{path.name} repeats {key} of another part")
            brain = file.get_slice(key).get_dtype() == "BF16"
            readers[key] = _brain_reader(path, key) if brain else _reader(file, key)
    return LazyState(readers)


def _reader(file: Any, key: str) -> Callable[[], Array]:
    def read() -> Array:
        array: Array = file.get_tensor(key)
        return array

    return read


def _brain_reader(path: Path, key: str) -> Callable[[], Array]:
    """Of a bfloat16 array, which NumPy does not know: the upper halves of float32 numbers."""

    def read() -> Array:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            entry = json.loads(file.read(size))[key]
            start, end = entry["data_offsets"]
            file.seek(8 + size + start)
            halves = np.frombuffer(file.read(end - start), "<u2")
        return (halves.astype("<u4") << 16).view("<f4").reshape(entry["shape"])

    return read
