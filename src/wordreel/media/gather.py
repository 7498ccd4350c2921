"""Putting a worker's messages together as windows, believing nothing that was not asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.media import wire
from wordreel.media.orient import turned, upright
from wordreel.media.pictures import LONGEST
from wordreel.media.process import Worker
from wordreel.media.types import AudioNeed, FrameNeed, Frames, Limits, Need, Sound, Window


@dataclass(frozen=True)
class Order:
    """What was asked of one file."""

    needs: tuple[Need, ...]
    window: float
    start: float = 0.0
    stop: float | None = None
    sparse: bool = False


class FrameBin:
    """The frames of one need, window by window."""

    def __init__(self, need: FrameNeed, order: Order, limits: Limits, orientation: int) -> None:
        self._need, self._order, self._limits, self._orientation = need, order, limits, orientation
        self._size: tuple[int, int] | None = None  # as stored: width, height
        self._stride = 0
        self._scratch = np.empty(0, np.uint8)
        self._next = 0
        self._images: NDArray[np.uint8] | None = None
        self._times: list[float] = []

    def take(self, header: dict[str, Any], worker: Worker) -> None:
        first = wire.whole(header, "first", self._next, self._next)
        count = wire.whole(header, "count", 1, self._room() - len(self._times))
        width, height = self._measure(header)
        if self._images is None:
            wide, high = turned(width, height, self._orientation)
            self._images = np.empty((self._room(), high, wide, 3), np.uint8)
        if self._order.sparse:
            times = [wire.real(header, "time", self._times[-1] if self._times else 0.0, 1e9)]
        else:
            times = [self._order.start + k / self._need.rate for k in range(first, first + count)]
        worker.fill(self._scratch.data)
        stored = self._scratch.reshape(height, self._stride)[:, : 3 * width].reshape(height, width, 3)
        at = len(self._times)
        self._images[at : at + count] = upright(stored, self._orientation)
        self._times += times
        self._next += count

    def _measure(self, header: dict[str, Any]) -> tuple[int, int]:
        """Accept the size of a frame: small enough, the same as before, and its bytes all announced."""
        longest = max(1, LONGEST * self._need.short_side)
        width = wire.whole(header, "width", 1, longest)
        height = wire.whole(header, "height", 1, longest)
        stride = wire.whole(header, "stride", 3 * width, 3 * width + 4096)
        if min(width, height) > self._need.short_side or width * height > self._limits.pixels:
            raise wire.Garbled("a frame larger than asked for")
        if self._size not in (None, (width, height)):
            raise wire.Garbled("a frame that changed its size")
        wire.whole(header, "bytes", stride * height, stride * height)
        if len(self._scratch) != stride * height:
            self._scratch = np.empty(stride * height, np.uint8)
        self._size, self._stride = (width, height), stride
        return width, height

    def _room(self) -> int:
        """How many samples a window can hold at most."""
        if self._order.sparse:
            stop = self._limits.seconds if self._order.stop is None else self._order.stop
            return math.ceil((stop - self._order.start) * self._need.rate) + 2
        return math.ceil((self._order.window + 1.0) * self._need.rate) + 2

    def close(self) -> Frames:
        width, height = turned(*(self._size or (0, 0)), self._orientation)
        images = self._images if self._images is not None else np.empty((0, height, width, 3), np.uint8)
        # Room that was not needed was never touched, and so costs no memory.
        images = images[: len(self._times)]
        frames = Frames(images, np.array(self._times, np.float64), 1.0 / self._need.rate)
        self._images, self._times = None, []
        return frames


class SoundBin:
    """The samples of one need, window by window."""

    def __init__(self, need: AudioNeed, order: Order) -> None:
        self._need = need
        self._room = math.ceil((order.window + 1.0) * need.rate) + 2
        self._next = self._first = 0
        self._pieces: list[NDArray[np.float32]] = []

    def take(self, header: dict[str, Any], worker: Worker) -> None:
        wire.whole(header, "first", self._next, self._next)
        size = wire.whole(header, "bytes", 4, 4 * (self._room - (self._next - self._first)))
        if size % 4:
            raise wire.Garbled("a broken sample")
        piece = np.empty(size // 4, np.float32)
        worker.fill(piece.data.cast("B"))
        self._pieces.append(piece)
        self._next += len(piece)

    def close(self) -> Sound:
        samples = np.concatenate(self._pieces) if self._pieces else np.empty(0, np.float32)
        # Float files may hold anything; the promise is numbers in [-1, 1].
        samples = np.clip(np.nan_to_num(samples, copy=False, posinf=1.0, neginf=-1.0), -1.0, 1.0)
        sound = Sound(samples, self._need.rate, self._first / self._need.rate)
        self._pieces, self._first = [], self._next
        return sound


def gather(worker: Worker, order: Order, limits: Limits) -> Iterator[Window]:
    """The windows a worker sends; `wire.Garbled` if it sends anything else."""
    begin = worker.receive()
    if begin.get("is") != "begin":
        raise wire.Garbled("no beginning")
    there = {FrameNeed: begin.get("video") is True, AudioNeed: begin.get("audio") is True}
    bins = _bins(order, limits, there, wire.whole(begin, "orientation", 0, 7))
    reached = order.start
    while True:
        header = worker.receive()
        kind = header.get("is")
        if kind in ("frame", "sound"):
            target = bins[wire.whole(header, "need", 0, len(bins) - 1)]
            if not isinstance(target, FrameBin if kind == "frame" else SoundBin):
                raise wire.Garbled(f"a {kind} nobody asked for")
            target.take(header, worker)
        elif kind == "window":
            wire.whole(header, "bytes", 0, 0)
            start = wire.real(header, "start", reached, reached)
            reached = wire.real(header, "end", start, limits.seconds + 10.0)
            yield Window(start, reached, tuple(None if b is None else b.close() for b in bins))
            if header.get("last") is True:
                return
        else:
            raise wire.Garbled("a message of no known kind")


def _bins(
    order: Order, limits: Limits, there: dict[type, bool], orientation: int
) -> Sequence[FrameBin | SoundBin | None]:
    bins: list[FrameBin | SoundBin | None] = []
    for need in order.needs:
        if not there[type(need)]:
            bins.append(None)
        elif isinstance(need, FrameNeed):
            bins.append(FrameBin(need, order, limits, orientation))
        else:
            bins.append(SoundBin(need, order))
    return bins
