"""Write the bytes of a cut that a worker sends, trusting nothing that was not requested."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from wordreel.errors import OverLimit
from wordreel.media.cut_request import CutRequest
from wordreel.media.worker_process import WorkerProcess
from wordreel.progress import Progress, ProgressCallback
from wordreel.util.child_process import Header, ProtocolError, get_float, get_int

LARGEST_PIECE = 1 << 24  # bytes of one message
DONE = ("none", "copied", "encoded")


@dataclass(frozen=True)
class CutReport:
    """What a clip holds: from `start` to `end` of its source, in seconds, and what became of its streams."""

    start: float
    end: float
    picture: str  # "copied", "encoded", or "none" where the source has none
    sound: str
    bytes: int


class CutStopped(Exception):
    """The cut is no longer wanted."""


@dataclass(frozen=True)
class Watch:
    """What a cut may cost, and who watches it: `stopped` is asked between pieces of the file."""

    max_bytes: int = 64 * 2**30
    stopped: Callable[[], bool] = lambda: False
    on_progress: ProgressCallback | None = None


def write_cut(worker: WorkerProcess, request: CutRequest, descriptor: int, watch: Watch) -> CutReport:
    """Write every piece where it belongs, until the worker says that all is sent."""
    size, seconds = 0, request.end - request.start
    while True:
        header = worker.answer()
        if watch.stopped():
            raise CutStopped
        if header.get("is") == "cut":
            return _report(header, size)
        if header.get("is") != "data":
            raise ProtocolError("a message of no known kind")
        length = get_int(header, "bytes", 1, LARGEST_PIECE)
        at = get_int(header, "at", 0, 2**50)
        if at + length > watch.max_bytes:
            raise OverLimit(f"the clip has more than {watch.max_bytes / 2**20:.0f} MiB; cut a shorter one")
        piece = bytearray(length)
        worker.payload(memoryview(piece))
        written = memoryview(piece)
        position = at
        while len(written):
            count = os.pwrite(descriptor, written, position)
            written, position = written[count:], position + count
        size = max(size, at + length)
        if watch.on_progress is not None:
            reached = min(get_float(header, "reached", 0.0, 1e9), seconds)
            watch.on_progress(Progress("cutting", round(reached), max(1, round(seconds))))


def _report(header: Header, size: int) -> CutReport:
    if header.get("picture") not in DONE or header.get("sound") not in DONE:
        raise ProtocolError("a report that is none")
    start = get_float(header, "start", 0.0, 1e9)
    end = get_float(header, "end", start, 1e9)
    return CutReport(start, end, header["picture"], header["sound"], size)
