"""What frames look like: pooled features of EfficientNet-Lite2, one row a second, and ImageNet's classes."""

from __future__ import annotations

import numpy as np

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.class_head import ClassHead, read_head
from wordreel.experts.preprocess import resize_crop
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.nets.efficientnet_lite import SIZE
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Labels, Track
from wordreel.weights.store import WeightStore

WEIGHTS = "efficientnet-lite2"
BATCH = 16

CARD = Card(
    name="appearance",
    modality="appearance",
    title="What frames look like (EfficientNet-Lite2, ImageNet)",
    dim=1280,
    need=FrameNeed(rate=1.0, short_side=SIZE),
    licence="Apache-2.0",
    weights=(WEIGHTS,),
    note="The central square of each frame, at 260 × 260 pixels.",
)


class AppearanceExpert:
    """The loaded expert."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        self._recogniser = recogniser(store)
        self.fingerprint = self._recogniser.fingerprint
        self._network = Network(store.file(WEIGHTS, "network.onnx"))

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per frame, valid for `[t, t + period)`."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        rows = [
            self._network(images=resize_crop(media.images[start : start + BATCH], SIZE))["features"]
            for start in range(0, len(media), BATCH)
        ]
        return Track(np.concatenate(rows), np.stack([media.times, media.times + media.period], axis=1))

    def labels(self, track: Track) -> Labels:
        """Logits of ImageNet's 1000 classes: they are linear in the pooled features."""
        return self._recogniser.labels(track)


def load(store: WeightStore) -> AppearanceExpert:
    """Load the expert with its weights, checked."""
    return AppearanceExpert(store)


def recogniser(store: WeightStore) -> ClassHead:
    """The names of ImageNet's 1000 classes from stored tracks, without the network."""
    name = fingerprint(CARD, store.source_hash(WEIGHTS))
    return read_head(store.file(WEIGHTS, "head.safetensors"), "imagenet.txt", name)
