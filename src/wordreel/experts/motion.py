"""What moves: I3D over short windows, pooled features, and the 400 actions of Kinetics.

A window is 16 frames at 6.25 a second, 2.56 s: the length I3D was trained on (64 frames at 25 a
second), seen at a quarter of the frames. One window stands for every 5.12 s, from the middle of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.class_head import ClassHead, read_head
from wordreel.experts.preprocess import resize_crop
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Labels, Track
from wordreel.weights.store import WeightStore

WEIGHTS = "i3d-kinetics400"
SIZE = 224
WINDOW = 16  # frames
SEGMENT = 32  # frames a window stands for

CARD = Card(
    name="motion",
    modality="motion",
    title="What moves (I3D, Kinetics-400)",
    dim=1024,
    need=FrameNeed(rate=6.25, short_side=256),
    licence="MIT",
    weights=(WEIGHTS,),
    span=61.44,
    note="2.56 s in the middle of every 5.12 s, the central square of each frame.",
)


class MotionExpert:
    """The loaded expert."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        self._recogniser = recogniser(store)
        self.fingerprint = self._recogniser.fingerprint
        self._network = Network(store.file(WEIGHTS, "network.onnx"))

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per 5.12 s from the first frame on."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        if len(media) == 1:
            return Absent("a still picture does not move")
        if len(media) < WINDOW // 2 and media.times[0] >= CARD.span - media.period:
            return Absent("the end of the video is too short a piece")
        plan = windows(len(media))
        rows = [
            self._network(frames=resize_crop(media.images[chosen], SIZE))["features"] for _, chosen in plan
        ]
        starts = media.times[[first for first, _ in plan]]
        ends = np.append(starts[1:], media.times[-1] + media.period)
        return Track(np.concatenate(rows), np.stack([starts, ends], axis=1))

    def labels(self, track: Track) -> Labels:
        """Logits of the 400 actions of Kinetics: they are linear in the pooled features."""
        return self._recogniser.labels(track)


def windows(count: int) -> list[tuple[int, NDArray[np.int64]]]:
    """For `count` frames: the first frame of every segment, and the 16 frames that are looked at.

    A last segment of less than half a window belongs to the one before it; one of less than a window borrows
    frames from before it. With fewer than 16 frames in all, frames are repeated evenly.

    >>> [(first, chosen[[0, -1]].tolist()) for first, chosen in windows(75)]
    [(0, [8, 23]), (32, [40, 55]), (64, [59, 74])]
    >>> windows(4)[0][1].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    """
    steps = np.arange(WINDOW)
    if count < WINDOW:
        return [(0, steps * count // WINDOW)]
    plan = []
    for first in range(0, count, SEGMENT):
        length = min(SEGMENT, count - first)
        if length >= WINDOW // 2:
            start = first + (length - WINDOW) // 2
            plan.append((first, min(start, count - WINDOW) + steps))
    return plan


def load(store: WeightStore) -> MotionExpert:
    """Load the expert with its weights, checked."""
    return MotionExpert(store)


def recogniser(store: WeightStore) -> ClassHead:
    """The names of the 400 actions of Kinetics from stored tracks, without the network."""
    name = fingerprint(CARD, store.source_hash(WEIGHTS))
    return read_head(store.file(WEIGHTS, "head.safetensors"), "kinetics400.txt", name)
