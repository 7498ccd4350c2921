"""Hand an expert its media in spans of the length it asked for, whatever windows the decoder gives.

Span k is `[k * span, (k + 1) * span)`. The decoder lets a remainder shorter than a second join its last
window, because no expert can do much with it; the spans here do the same. So when a window ends exactly
where a span does, more than a second follows or nothing does, and the span is handed out at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.media.types import Frames, Sound

REMAINDER = 1.0
ROUNDING = 1e-6


class _Edges:
    """Where the next span ends."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._number = 1

    def passed(self, reached: float) -> list[tuple[float, bool]]:
        """Edges that are now certain, and for each whether everything gathered lies before it."""
        found: list[tuple[float, bool]] = []
        while True:
            edge = self._number * self._span
            exact = abs(reached - edge) < ROUNDING
            if not exact and reached < edge + REMAINDER:
                return found
            found.append((edge, exact))
            self._number += 1


class FrameSpans:
    """Frames with `k * span <= time < (k + 1) * span` go together."""

    def __init__(self, span: float) -> None:
        self._edges = _Edges(span)
        self._parts: list[Frames] = []

    def take(self, frames: Frames, reached: float) -> list[Frames]:
        """Add the frames of a window that ends at `reached`; the spans complete by now."""
        if len(frames):
            self._parts.append(frames)
        done: list[Frames] = []
        for edge, everything in self._edges.passed(reached):
            done += self.rest() if everything else self._before(edge)
        return done

    def rest(self) -> list[Frames]:
        """What has gathered since the last complete span."""
        parts, self._parts = self._parts, []
        if not parts:
            return []
        return [Frames(_join([p.images for p in parts]), _join([p.times for p in parts]), parts[0].period)]

    def _before(self, edge: float) -> list[Frames]:
        first: list[Frames] = []
        later: list[Frames] = []
        for part in self._parts:
            at = int(np.searchsorted(part.times, edge - ROUNDING))
            for kept, piece in ((first, slice(0, at)), (later, slice(at, None))):
                if len(part.times[piece]):
                    kept.append(Frames(part.images[piece], part.times[piece], part.period))
        self._parts = first
        done = self.rest()
        self._parts = later
        return done


class SoundSpans:
    """Samples of `[k * span, (k + 1) * span)`; a hole between windows is silence."""

    def __init__(self, span: float) -> None:
        self._edges = _Edges(span)
        self._parts: list[NDArray[np.float32]] = []
        self._held = 0
        self._rate = 0
        self._next = 0  # the number, from time 0, of the first sample held

    def take(self, sound: Sound, reached: float) -> list[Sound]:
        if len(sound.samples):
            first = round(sound.start * sound.rate)
            if not self._rate:
                self._rate, self._next = sound.rate, first
            hole = first - self._next - self._held
            if hole > 0:  # without it everything after would be heard too early
                self._keep(np.zeros(hole, np.float32))
            self._keep(sound.samples)
        done: list[Sound] = []
        for edge, everything in self._edges.passed(reached):
            done += self.rest() if everything else self._cut(round(edge * self._rate) - self._next)
        return done

    def rest(self) -> list[Sound]:
        return self._cut(self._held)

    def _keep(self, samples: NDArray[np.float32]) -> None:
        self._parts.append(samples)
        self._held += len(samples)

    def _cut(self, size: int) -> list[Sound]:
        size = min(size, self._held)
        if size <= 0:
            return []
        joined = _join(self._parts)
        cut = Sound(joined[:size], self._rate, self._next / self._rate)
        self._parts = [joined[size:]] if len(joined) > size else []
        self._held -= size
        self._next += size
        return [cut]


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
