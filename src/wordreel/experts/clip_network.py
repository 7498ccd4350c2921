"""An expert that is one network over short clips: a row per window of frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.prepare import Preparation
from wordreel.media.types import Frames, Sound
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Float32, Labels, Track
from wordreel.weights.store import WeightStore


@dataclass(frozen=True)
class Windows:
    """`length` frames, begun every `stride` frames."""

    length: int
    stride: int

    def of(self, count: int) -> NDArray[np.int64]:
        """Which frames each window sees, `[windows, length]`.

        If frames are left at the end that no window would see, a last window ends with them; fewer frames
        than a window are filled up with the last one.

        >>> Windows(4, 3).of(8)[:, 0].tolist(), Windows(4, 3).of(2).tolist()
        ([0, 3, 4], [[0, 1, 1, 1]])
        """
        last = max(count - self.length, 0)
        starts = np.arange(0, last + 1, self.stride)
        if count - self.length > starts[-1] and count > starts[-1] + max(self.length, self.stride):
            starts = np.append(starts, last)
        chosen: NDArray[np.int64] = np.minimum(starts[:, None] + np.arange(self.length), count - 1)
        return chosen


class ClipExpert:
    """Runs the network of the card's weights over windows of prepared frames."""

    def __init__(self, card: Card, store: WeightStore, prepare: Preparation, windows: Windows) -> None:
        self.card = card
        (weights,) = card.weights
        folder = store.folder(weights)
        self.fingerprint = fingerprint(card, store.source_hash(weights))
        self._network = Network(folder / "network.onnx")
        self._prepare = prepare
        self._windows = windows

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per window, valid from its first frame to the end of its last."""
        return clip_track(media, self._windows, self.card, self._run)

    def labels(self, track: Track) -> Labels | None:
        return None

    def _run(self, images: NDArray[np.uint8]) -> Float32:
        clip = self._prepare(images).transpose(1, 0, 2, 3)[None]
        return self._network(clips=np.ascontiguousarray(clip))["features"]


def clip_track(
    media: Frames | Sound, windows: Windows, card: Card, run: Callable[[NDArray[np.uint8]], Float32]
) -> Track | Absent:
    """Call `run` with the frames of each window, one row each; a leftover of half a window says nothing."""
    if not isinstance(media, Frames) or len(media) == 0:
        return Absent("no frames")
    if len(media) == 1:
        return Absent("a still picture does not move")
    if len(media) < windows.length // 2 and media.times[0] >= card.span - media.period:
        return Absent("the end of the video is too short a piece")
    chosen = windows.of(len(media))
    rows = [run(media.images[window]) for window in chosen]
    times = np.stack([media.times[chosen[:, 0]], media.times[chosen[:, -1]] + media.period], axis=1)
    return Track(np.concatenate(rows), times)
