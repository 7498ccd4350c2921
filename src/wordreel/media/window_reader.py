"""Assemble a worker's messages into windows and cut files, trusting nothing that was not requested."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import OverLimit
from wordreel.media.types import (
    AudioNeed,
    CutReport,
    CutRequest,
    CutStopped,
    FrameNeed,
    Frames,
    Limits,
    Sound,
    StreamRequest,
    Watch,
    Window,
)
from wordreel.media.video_sampler import MAX_ASPECT, displayed_size, upright
from wordreel.media.worker_process import WorkerProcess
from wordreel.progress import Progress
from wordreel.util.child_process import Header, ProtocolError, get_float, get_int


class FrameBuffer:
    """The frames of one need, window by window."""

    def __init__(self, need: FrameNeed, request: StreamRequest, limits: Limits, orientation: int) -> None:
        self._need, self._request, self._limits, self._orientation = need, request, limits, orientation
        self._size: tuple[int, int] | None = None  # as stored: width, height
        self._stride = 0
        self._scratch = np.empty(0, np.uint8)
        self._next = 0
        self._images: NDArray[np.uint8] | None = None
        self._times: list[float] = []

    def take(self, header: Header, worker: WorkerProcess) -> None:
        """Read one frame from the worker."""
        first = get_int(header, "first", self._next, self._next)
        count = get_int(header, "count", 1, self._capacity() - len(self._times))
        width, height = self._measure(header)
        if self._images is None:
            wide, high = displayed_size(width, height, self._orientation)
            self._images = page_zeros((self._capacity(), high, wide, 3), np.uint8)
        if self._request.sparse:
            times = [get_float(header, "time", self._times[-1] if self._times else 0.0, 1e9)]
        else:
            times = [self._request.start + k / self._need.rate for k in range(first, first + count)]
        worker.payload(self._scratch.data)
        stored = self._scratch.reshape(height, self._stride)[:, : 3 * width].reshape(height, width, 3)
        at = len(self._times)
        self._images[at : at + count] = upright(stored, self._orientation)
        self._times += times
        self._next += count

    def _measure(self, header: Header) -> tuple[int, int]:
        """Validate the size of a frame: small enough, the same as before, and with all its bytes."""
        longest = max(1, MAX_ASPECT * self._need.short_side)
        width = get_int(header, "width", 1, longest)
        height = get_int(header, "height", 1, longest)
        stride = get_int(header, "stride", 3 * width, 3 * width + 4096)
        if min(width, height) > self._need.short_side or width * height > self._limits.pixels:
            raise ProtocolError("a frame larger than requested")
        if self._size not in (None, (width, height)):
            raise ProtocolError("a frame that changed its size")
        get_int(header, "bytes", stride * height, stride * height)
        if len(self._scratch) != stride * height:
            self._scratch = np.empty(stride * height, np.uint8)
        self._size, self._stride = (width, height), stride
        return width, height

    def _capacity(self) -> int:
        """How many samples a window can hold at most."""
        if self._request.sparse:
            stop = self._limits.seconds if self._request.stop is None else self._request.stop
            return math.ceil((stop - self._request.start) * self._need.rate) + 2
        return math.ceil((self._request.window + 1.0) * self._need.rate) + 2

    def close(self) -> Frames:
        """Return the frames of the window, and begin another."""
        width, height = displayed_size(*(self._size or (0, 0)), self._orientation)
        images = self._images if self._images is not None else np.empty((0, height, width, 3), np.uint8)
        # Unused capacity was never touched, and so costs no memory.
        images = images[: len(self._times)]
        frames = Frames(images, np.array(self._times, np.float64), 1.0 / self._need.rate)
        self._images, self._times = None, []
        return frames


class SoundBuffer:
    """The samples of one need, window by window."""

    def __init__(self, need: AudioNeed, request: StreamRequest) -> None:
        self._need = need
        self._capacity = math.ceil((request.window + 1.0) * need.rate) + 2
        self._next = self._first = 0
        self._pieces: list[NDArray[np.float32]] = []

    def take(self, header: Header, worker: WorkerProcess) -> None:
        """Read some samples from the worker."""
        get_int(header, "first", self._next, self._next)
        size = get_int(header, "bytes", 4, 4 * (self._capacity - (self._next - self._first)))
        if size % 4:
            raise ProtocolError("a broken sample")
        piece = np.empty(size // 4, np.float32)
        worker.payload(piece.data.cast("B"))
        self._pieces.append(piece)
        self._next += len(piece)

    def close(self) -> Sound:
        """Return the sound of the window, and begin another."""
        samples = np.concatenate(self._pieces) if self._pieces else np.empty(0, np.float32)
        # Float files may hold anything; the promise is numbers in [-1, 1].
        samples = np.clip(np.nan_to_num(samples, copy=False, posinf=1.0, neginf=-1.0), -1.0, 1.0)
        sound = Sound(samples, self._need.rate, self._first / self._need.rate)
        self._pieces, self._first = [], self._next
        return sound


def read_windows(worker: WorkerProcess, request: StreamRequest, limits: Limits) -> Iterator[Window]:
    """Yield the windows that a worker sends; raise `ProtocolError` if it sends anything else."""
    start_message = worker.answer()
    if start_message.get("is") != "begin":
        raise ProtocolError("no start message")
    there = {FrameNeed: start_message.get("video") is True, AudioNeed: start_message.get("audio") is True}
    buffers = _buffers(request, limits, there, get_int(start_message, "orientation", 0, 7))
    reached = request.start
    while True:
        header = worker.answer()
        kind = header.get("is")
        if kind in ("frame", "sound"):
            target = buffers[get_int(header, "need", 0, len(buffers) - 1)]
            if not isinstance(target, FrameBuffer if kind == "frame" else SoundBuffer):
                raise ProtocolError(f"a {kind} that was not requested")
            target.take(header, worker)
        elif kind == "window":
            get_int(header, "bytes", 0, 0)
            start = get_float(header, "start", reached, reached)
            reached = get_float(header, "end", start, limits.seconds + 10.0)
            yield Window(
                start, reached, tuple(None if buffer is None else buffer.close() for buffer in buffers)
            )
            if header.get("last") is True:
                return
        else:
            raise ProtocolError("a message of no known kind")


def _buffers(
    request: StreamRequest, limits: Limits, there: dict[type, bool], orientation: int
) -> Sequence[FrameBuffer | SoundBuffer | None]:
    buffers: list[FrameBuffer | SoundBuffer | None] = []
    for need in request.needs:
        if not there[type(need)]:
            buffers.append(None)
        elif isinstance(need, FrameNeed):
            buffers.append(FrameBuffer(need, request, limits, orientation))
        else:
            buffers.append(SoundBuffer(need, request))
    return buffers


LARGE = 4 << 20  # bytes


def page_zeros(shape: Sequence[int], dtype: Any) -> NDArray[Any]:
    """Return an array of zeros that takes memory where it is written, and none when it is dropped.

    After a few large arrays were freed, `malloc` takes the next ones from its heaps, where what outlives them
    keeps their memory: hundreds of megabytes while files are added. Huge pages make new ones cheap.

    >>> page_zeros((2, 3), np.uint8).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    count = math.prod(shape)
    size = count * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype, count).reshape(shape)


LARGEST_PIECE = 1 << 24  # bytes of one message
DONE = ("none", "copied", "encoded")


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
