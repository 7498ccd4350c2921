"""What frames look like: pooled features of EfficientNet-Lite2, one row a second, and ImageNet's classes."""

from __future__ import annotations

from functools import cached_property
from importlib.resources import files

import numpy as np

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.pixels import resize_crop
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.nets.efficientnet_lite import SIZE
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Float32, Labels, Track
from wordreel.weights.store import Store
from wordreel.weights.torch_file import read_state_dict

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


class Appearance:
    """The loaded expert."""

    def __init__(self, store: Store) -> None:
        self.card = CARD
        self.fingerprint = fingerprint(CARD, store.source_hash(WEIGHTS))
        self._store = store
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
        """Logits of the 1000 ImageNet classes: they are linear in the pooled features."""
        weight, bias = self._head
        return Labels(class_names(), track.values @ weight.T + bias, track.times)

    @cached_property
    def _head(self) -> tuple[Float32, Float32]:
        head = read_state_dict(self._store.file(WEIGHTS, "head.safetensors"))
        return head["weight"], head["bias"]


def class_names() -> tuple[str, ...]:
    """The names of ImageNet's 1000 classes, in the order of the logits."""
    text = (files("wordreel.experts") / "data" / "imagenet.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if not line.startswith("#"))


def load(store: Store) -> Appearance:
    """The expert, its weights checked and in memory."""
    return Appearance(store)
