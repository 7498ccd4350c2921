"""Fault points of a process: `faults.c`, compiled, preloaded and steered.

A fault point is a call that changes files below a folder (creating, writing, truncating, flushing, renaming
or deleting one) or that sends a message to a server. `Faults` works in a process that was started with the
library preloaded (`preload`).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")
HEAD = struct.Struct("=5q")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


class Mode(IntEnum):
    """What happens at the chosen point, in the order of the enumeration in `faults.c`."""

    OFF = 0
    RECORD = 1  # and the process dies at the point
    KILL = 2  # the process dies before the call
    TORN = 3  # it dies when half of the bytes are written
    FULL = 4  # from here on nothing can grow; of this write, half fits
    READ_ONLY = 5  # from here on nothing can be changed
    IO_ERROR = 6  # this call fails
    MESSAGE_LOST = 7  # the connection is lost before the server has this message
    ANSWER_LOST = 8  # it is lost before the server answers it


@dataclass(frozen=True)
class Call:
    """One recorded call. `kind`: c(reate), w(rite), t(runcate), s(ync), r(ename), u(nlink), m(kdir),
    n(etwork), or x for one that failed."""

    kind: str
    path: str
    other: str
    offset: int
    data: bytes


def compile_faults(folder: Path) -> Path:
    """Compile the library into a folder."""
    assert COMPILER is not None
    out = folder / "faults.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", out, SOURCE, "-ldl", "-lpthread"], check=True)
    return out


def preload(library: Path) -> dict[str, str]:
    """The environment of a process with fault points."""
    return {**os.environ, "LD_PRELOAD": str(library), "PYTHONDONTWRITEBYTECODE": "1"}


class Faults:
    """The fault points of this process, below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._library = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self._library.faults_points.restype = ctypes.c_long

    def start(self, mode: Mode, point: int = 0, log: int = -1) -> None:
        self._library.faults_start(os.fsencode(self.root), int(mode), ctypes.c_long(point), log)

    def stop(self) -> None:
        self._library.faults_stop()

    @property
    def fired(self) -> bool:
        return bool(self._library.faults_fired())


def read_calls(path: Path) -> list[Call]:
    """The calls that a process recorded, in order."""
    data, at, calls = path.read_bytes(), 0, []
    while at < len(data):
        kind, offset, *lengths = HEAD.unpack_from(data, at)
        at += HEAD.size
        parts = []
        for length in lengths:
            parts.append(data[at : at + length])
            at += length
        calls.append(Call(chr(kind), os.fsdecode(parts[0]), os.fsdecode(parts[1]), offset, parts[2]))
    return calls
