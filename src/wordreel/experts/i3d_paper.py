"""What moves: I3D over 64 frames at 25 a second, a window begun every second (Liu et al. 2019)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.clip_network import Windows, clip_track
from wordreel.experts.prepare import CENTRED, Preparation
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Float32, Labels, Track
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["i3d_paper"]
PREPARE = Preparation(224, *CENTRED, short_side=256)
WINDOWS = Windows(64, 25)

CARD = Card(
    name="i3d_paper",
    modality="motion",
    title="What moves (I3D, Kinetics-400, as in the papers)",
    dim=1024,
    need=FrameNeed(rate=25.0, short_side=256),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=20.0,
    default=False,
    note=f"64 frames at 25 a second, a new window every second. To have it: {WEIGHTS.how}.",
)


class I3DExpert:
    """The loaded expert. Its network takes the bytes of one window and scales them itself."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        folder = store.folder(WEIGHTS.name)
        self.fingerprint = fingerprint(CARD, store.source_hash(WEIGHTS.name))
        self._network = Network(folder / "network.onnx")

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per window, valid from its first frame to the end of its last."""
        return clip_track(media, WINDOWS, CARD, self._run)

    def labels(self, track: Track) -> Labels | None:
        return None

    def _run(self, images: NDArray[np.uint8]) -> Float32:
        return self._network(frames=np.ascontiguousarray(PREPARE.cut(images)))["features"]


def load(store: WeightStore) -> I3DExpert:
    """The expert, its weights checked and in memory."""
    return I3DExpert(store)
