"""What no input may do while it is read: write outside, connect, start programs, take long or much memory."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.rename": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.symlink": 2, "os.link": 2,
    "os.truncate": 1, "os.chmod": 1, "os.chown": 1, "shutil.rmtree": 1,
}  # fmt: skip  # how many of the first arguments are paths
PROGRAMS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen")


class Hang(BaseException):
    """A case took more processor time than allowed; not an Exception, so that no code swallows it."""


class Watch:
    """Violations by whatever runs between `start` and `stop`."""

    def __init__(self, folder: Path, programs: bool) -> None:
        self._folder = os.path.realpath(folder)
        self._programs = programs
        self._on = False
        self._found: list[str] = []

    def install(self) -> None:
        """Hear of everything this process does, until it ends."""
        sys.addaudithook(self.hear)

    def start(self) -> None:
        self._found = []
        self._on = True

    def stop(self) -> list[str]:
        self._on = False
        return self._found

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITES and not isinstance(path, int):
                self._check(event, path)
        elif event in CHANGES:
            paths, folders = arguments[: CHANGES[event]], arguments[-CHANGES[event] :]
            for path, folder in zip(paths, folders, strict=True):
                self._check(event, path, folder)
        elif event == "socket.connect":
            address = arguments[1]
            if not (isinstance(address, tuple) and address[0] == "127.0.0.1"):
                self._found.append(f"{event} {address}")
        elif event in PROGRAMS and not self._programs:
            self._found.append(f"{event} {arguments[0]!r:.80}")

    def _check(self, event: str, path: Any, folder: Any = None) -> None:
        if isinstance(path, int):
            return
        inside = f"/proc/self/fd/{folder}" if isinstance(folder, int) and folder >= 0 else ""
        whole = os.path.realpath(os.path.join(inside, os.fsdecode(path)))  # noqa: PTH118 - may be bytes
        if whole != os.devnull and not whole.startswith((self._folder, "/proc/self")):
            self._found.append(f"{event} {whole}")


class Lines:
    """The lines of wordreel that were reached, in all threads that start after `trace`."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._ours: dict[CodeType, bool] = {}
        self.seen: set[tuple[CodeType, int]] = set()

    def trace(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        ours = self._ours.get(code)
        if ours is None:
            ours = self._ours[code] = code.co_filename.startswith(self._root)
        return self._line if ours else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.seen.add((frame.f_code, frame.f_lineno))
        return self._line


def peak_memory() -> int:
    """The most memory this process has had since `forget_peak`, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmHWM")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def bound_memory(most: int) -> None:
    """A bound for all, so that the machine survives what `peak_memory` then reports."""
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raise `Hang` in the main thread after so much processor time of this process."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds:g} seconds of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
