"""Checksums of arrays and files: damage on a disk is found before what it hit is trusted."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAME = "checksums.json"


def array_checksum(arrays: Mapping[str, NDArray[Any]]) -> int:
    """Return a crc32 over the names, types, shapes and bytes of arrays, in the order of their names.

    >>> array_checksum({"a": np.zeros(2)}) == array_checksum({"a": np.zeros((2, 1))})
    False
    """
    total = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), total)
        total = zlib.crc32(array.reshape(-1).view(np.uint8).data, total)
    return total


def file_checksum(path: Path) -> int:
    """Return a crc32 over the bytes of a file."""
    total = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            total = zlib.crc32(block, total)
    return total


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files below a folder into it; flushing is the caller's."""
    sums = {str(path.relative_to(folder)): file_checksum(path) for path in _files(folder)}
    (folder / NAME).write_text(json.dumps(sums))


def damaged_files(folder: Path) -> list[str]:
    """Say what is wrong with the files that `write_checksums` saw; nothing where there are no checksums."""
    try:
        sums = json.loads((folder / NAME).read_bytes())
        return [
            f"{folder / name} does not match its checksum" for name in sums if not _whole(folder, name, sums)
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        return [f"{folder / NAME} cannot be read ({error})"]


def _whole(folder: Path, name: str, sums: Mapping[str, int]) -> bool:
    try:
        return file_checksum(folder / name) == sums[name]
    except OSError:
        return False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != NAME)
