"""What moves: I3D over short windows, pooled features, and the 400 actions of Kinetics.

A window is 16 frames at 6.25 a second, 2.56 s: the length I3D was trained on (64 frames at 25 a
second), seen at a quarter of the frames. One window stands for every 5.12 s, from the middle of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.appearance import ClassHead, class_names
from wordreel.experts.base import Card, ExpertEntry, IncrementalExpert, fingerprint
from wordreel.experts.preprocess import resize_crop
from wordreel.media.types import FrameNeed, Frames
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Track

WEIGHTS = "i3d-kinetics400"
SIZE = 224
WINDOW = 16  # frames
SEGMENT = 32  # frames a window stands for

Images = NDArray[np.uint8]

CARD = Card(
    name="motion", modality="motion", title="What moves (I3D, Kinetics-400)", dim=1024,
    need=FrameNeed(rate=6.25, short_side=256), licence="MIT", weights=(WEIGHTS,), span=61.44, default=False,
    note="2.56 s in the middle of every 5.12 s, the central square of each frame.",
)  # fmt: skip


class MotionExpert(IncrementalExpert):
    """The loaded expert."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        self.fingerprint = _fingerprint(store)
        self._network = Network(store.file(WEIGHTS, "network.onnx"))

    def begin(self) -> MotionChunk:
        return MotionChunk(lambda frames: self._network(frames=frames)["features"])


class MotionChunk:
    """One row per 5.12 s from the first frame of a chunk on; only the frames that may still be used are held.

    A last segment of less than half a window belongs to the one before it; one of less than a window borrows
    frames from before it. With fewer than 16 frames in all, frames are repeated evenly.
    """

    def __init__(self, features: Callable[[Images], Float32]) -> None:
        self._features = features
        self._recent: Images = np.empty((0, SIZE, SIZE, 3), np.uint8)  # the last frames
        self._times: list[float] = []  # of all frames
        self._period = 0.0
        self._firsts: list[int] = []  # the first frame of every segment that has its row
        self._rows: list[Float32] = []

    def push(self, media: Frames) -> None:
        for start in range(0, len(media), WINDOW):
            piece = slice(start, start + WINDOW)
            self._recent = np.concatenate([self._recent, resize_crop(media.images[piece], SIZE)])
            self._times += media.times[piece].tolist()
            first = len(self._firsts) * SEGMENT
            if len(self._times) >= first + SEGMENT:
                self._look(first, first + (SEGMENT - WINDOW) // 2 + np.arange(WINDOW))
                self._recent = self._recent[-(len(self._times) - first - SEGMENT + WINDOW) :]
        self._period = media.period

    def finish(self) -> Track | Absent:
        count = len(self._times)
        if count == 0:
            return Absent("no frames")
        if count == 1:
            return Absent("a still picture does not move")
        if count < WINDOW // 2 and self._times[0] >= CARD.span - self._period:
            return Absent("the end of the video is too short a piece")
        first = len(self._firsts) * SEGMENT
        if count < WINDOW:
            self._look(0, np.arange(WINDOW) * count // WINDOW)
        elif count - first >= WINDOW // 2:
            start = min(first + (count - first - WINDOW) // 2, count - WINDOW)
            self._look(first, start + np.arange(WINDOW))
        starts = np.array([self._times[first] for first in self._firsts])
        ends = np.append(starts[1:], self._times[-1] + self._period)
        return Track(np.concatenate(self._rows), np.stack([starts, ends], axis=1))

    def _look(self, first: int, chosen: NDArray[np.int64]) -> None:
        """Add the row of the segment that begins at frame `first`, from the 16 chosen frames."""
        dropped = len(self._times) - len(self._recent)
        self._rows.append(self._features(self._recent[chosen - dropped]))
        self._firsts.append(first)


def recogniser(store: WeightStore) -> ClassHead:
    """Return what names the 400 actions of Kinetics in stored tracks, without the network."""
    _, head = map_safetensors(store.file(WEIGHTS, "head.safetensors"))
    return ClassHead(class_names("kinetics400.txt"), head["weight"], head["bias"], _fingerprint(store))


def _fingerprint(store: WeightStore) -> str:
    return fingerprint(CARD, store.source_hash(WEIGHTS))


EXPERTS = {CARD.name: ExpertEntry(CARD, MotionExpert, recogniser=recogniser)}
