"""An expert that is one network over single frames: a row per frame."""

from __future__ import annotations

import numpy as np

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.prepare import Preparation
from wordreel.media.types import Frames, Sound
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Labels, Track
from wordreel.weights.store import WeightStore

BATCH = 8


class FrameExpert:
    """Runs the network of the card's weights over prepared frames."""

    def __init__(self, card: Card, store: WeightStore, prepare: Preparation) -> None:
        self.card = card
        (weights,) = card.weights
        folder = store.folder(weights)
        self.fingerprint = fingerprint(card, store.source_hash(weights))
        self._network = Network(folder / "network.onnx")
        self._prepare = prepare

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per frame, valid for `[t, t + period)`."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        rows = [
            self._network(frames=self._prepare(media.images[start : start + BATCH]))["features"]
            for start in range(0, len(media), BATCH)
        ]
        return Track(np.concatenate(rows), np.stack([media.times, media.times + media.period], axis=1))

    def labels(self, track: Track) -> Labels | None:
        return None
