"""Cut decoded media into chunks of the length an expert asks for, whatever windows the decoder returns.

Chunk k is `[k * span, (k + 1) * span)`. The decoder merges a remainder shorter than a second into its last
window, because no expert can do much with it; chunks do the same. So when a window ends exactly where a
chunk does, either more than a second follows or nothing does, and the chunk is complete.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.media.types import Frames, Sound

MIN_REMAINDER = 1.0
ROUNDING = 1e-6


class _Edges:
    """Where the next chunk ends."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._number = 1

    def passed(self, reached: float) -> list[tuple[float, bool]]:
        """Edges that are now certain, and for each whether everything buffered lies before it."""
        edges: list[tuple[float, bool]] = []
        while True:
            edge = self._number * self._span
            exact = abs(reached - edge) < ROUNDING
            if not exact and reached < edge + MIN_REMAINDER:
                return edges
            edges.append((edge, exact))
            self._number += 1


class FrameChunker:
    """Groups frames with `k * span <= time < (k + 1) * span`."""

    def __init__(self, span: float) -> None:
        self._edges = _Edges(span)
        self._parts: list[Frames] = []

    def push(self, frames: Frames, reached: float) -> list[Frames]:
        """Add the frames of a window that ends at `reached`; return the chunks that are now complete."""
        if len(frames):
            self._parts.append(frames)
        done: list[Frames] = []
        for edge, everything in self._edges.passed(reached):
            done += self.flush() if everything else self._before(edge)
        return done

    def flush(self) -> list[Frames]:
        """Return what is buffered since the last complete chunk."""
        parts, self._parts = self._parts, []
        if not parts:
            return []
        return [Frames(_join([p.images for p in parts]), _join([p.times for p in parts]), parts[0].period)]

    def _before(self, edge: float) -> list[Frames]:
        first: list[Frames] = []
        later: list[Frames] = []
        for part in self._parts:
            at = int(np.searchsorted(part.times, edge - ROUNDING))
            for target, piece in ((first, slice(0, at)), (later, slice(at, None))):
                if len(part.times[piece]):
                    target.append(Frames(part.images[piece], part.times[piece], part.period))
        self._parts = first
        done = self.flush()
        self._parts = later
        return done


class SoundChunker:
    """Groups samples of `[k * span, (k + 1) * span)`; a gap between windows becomes silence."""

    def __init__(self, span: float) -> None:
        self._edges = _Edges(span)
        self._parts: list[NDArray[np.float32]] = []
        self._buffered = 0
        self._rate = 0
        self._next = 0  # index, from time 0, of the first buffered sample

    def push(self, sound: Sound, reached: float) -> list[Sound]:
        """Add the samples of a window that ends at `reached`; return the chunks that are now complete."""
        if len(sound.samples):
            first = round(sound.start * sound.rate)
            if not self._rate:
                self._rate, self._next = sound.rate, first
            gap = first - self._next - self._buffered
            if gap > 0:  # without it all later sound would come too early
                self._append(np.zeros(gap, np.float32))
            self._append(sound.samples)
        done: list[Sound] = []
        for edge, everything in self._edges.passed(reached):
            done += self.flush() if everything else self._cut(round(edge * self._rate) - self._next)
        return done

    def flush(self) -> list[Sound]:
        """Return what is buffered since the last complete chunk."""
        return self._cut(self._buffered)

    def _append(self, samples: NDArray[np.float32]) -> None:
        self._parts.append(samples)
        self._buffered += len(samples)

    def _cut(self, size: int) -> list[Sound]:
        size = min(size, self._buffered)
        if size <= 0:
            return []
        joined = _join(self._parts)
        chunk = Sound(joined[:size], self._rate, self._next / self._rate)
        self._parts = [joined[size:]] if len(joined) > size else []
        self._buffered -= size
        self._next += size
        return [chunk]


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
