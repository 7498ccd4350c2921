"""Experts that are one published network: over single frames, or over windows of frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.preprocess import Preprocess
from wordreel.media.types import Frames, Sound
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Labels, Track

BATCH = 8


@dataclass(frozen=True)
class FrameWindows:
    """Windows of `length` frames that start every `stride` frames."""

    length: int
    stride: int

    def indices(self, count: int) -> NDArray[np.int64]:
        """The frames of each window over `count` frames, `[windows, length]`.

        If frames at the end are in no window, a last window ends with them; fewer frames than a window are
        padded with the last one.

        >>> FrameWindows(4, 3).indices(8)[:, 0].tolist(), FrameWindows(4, 3).indices(2).tolist()
        ([0, 3, 4], [[0, 1, 1, 1]])
        """
        last = max(count - self.length, 0)
        starts = np.arange(0, last + 1, self.stride)
        if count - self.length > starts[-1] and count > starts[-1] + max(self.length, self.stride):
            starts = np.append(starts, last)
        indices: NDArray[np.int64] = np.minimum(starts[:, None] + np.arange(self.length), count - 1)
        return indices


class _NetworkExpert:
    """The network of the card's weights and its preprocessing."""

    def __init__(self, card: Card, store: WeightStore, preprocess: Preprocess) -> None:
        self.card = card
        (weights,) = card.weights
        folder = store.folder(weights)
        self.fingerprint = fingerprint(card, store.source_hash(weights))
        self._network = Network(folder / "network.onnx")
        self._preprocess = preprocess

    def labels(self, track: Track) -> Labels | None:
        return None


class FrameExpert(_NetworkExpert):
    """A network over single frames: one row per frame."""

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per frame, valid for `[t, t + period)`."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        rows = [
            self._network(frames=self._preprocess(media.images[start : start + BATCH]))["features"]
            for start in range(0, len(media), BATCH)
        ]
        return Track(np.concatenate(rows), np.stack([media.times, media.times + media.period], axis=1))


class WindowExpert(_NetworkExpert):
    """A network over windows of frames: one row per window.

    `raw_pixels` is for networks that take cropped bytes `[n, h, w, 3]` and scale them themselves.
    """

    def __init__(
        self,
        card: Card,
        store: WeightStore,
        preprocess: Preprocess,
        windows: FrameWindows,
        raw_pixels: bool = False,
    ) -> None:
        super().__init__(card, store, preprocess)
        self._windows = windows
        self._run = self._run_raw if raw_pixels else self._run_scaled

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per window, valid from its first frame to the end of its last."""
        return window_track(media, self._windows, self.card, self._run)

    def _run_scaled(self, images: NDArray[np.uint8]) -> Float32:
        clip = self._preprocess(images).transpose(1, 0, 2, 3)[None]
        return self._network(clips=np.ascontiguousarray(clip))["features"]

    def _run_raw(self, images: NDArray[np.uint8]) -> Float32:
        return self._network(frames=np.ascontiguousarray(self._preprocess.crop(images)))["features"]


def window_track(
    media: Frames | Sound, windows: FrameWindows, card: Card, run: Callable[[NDArray[np.uint8]], Float32]
) -> Track | Absent:
    """Call `run` on the frames of each window; a remainder of less than half a window is absent."""
    if not isinstance(media, Frames) or len(media) == 0:
        return Absent("no frames")
    if len(media) == 1:
        return Absent("a still picture does not move")
    if len(media) < windows.length // 2 and media.times[0] >= card.span - media.period:
        return Absent("the end of the video is too short a piece")
    chosen = windows.indices(len(media))
    rows = [run(media.images[window]) for window in chosen]
    times = np.stack([media.times[chosen[:, 0]], media.times[chosen[:, -1]] + media.period], axis=1)
    return Track(np.concatenate(rows), times)
