"""What frames look like: pooled features of EfficientNet-Lite2, one row a second, and ImageNet's classes.

The network was trained further on captioned pictures and frames (docs/appearance.md) and comes with wordreel.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.experts.appearance_file import AppearanceFile
from wordreel.experts.base import Card, fingerprint
from wordreel.experts.class_head import ClassHead, class_names
from wordreel.experts.preprocess import resize_crop
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.sessions import picture_batch
from wordreel.runtime.stamped_hash import STAMPS, has_sha256
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Labels, Track

FILE = Path(__file__).parent / "data" / "appearance.safetensors"
SHA256 = "fe093dce98867c36eb35da4d0b5e57d8b480c691536ec3382b765d0e0e1a8a86"
"""Of the file. The default model is trained on the features of one network: change both together."""
SIZE = 224
CLASSES = "imagenet.txt"
SUPERSEDED = frozenset({"74d0fee34e410d60", "5810150b3905e6a6"})
"""Fingerprints of earlier networks: their features are no input for the built-in models."""

CARD = Card(
    name="appearance",
    modality="appearance",
    title="What frames look like (EfficientNet-Lite2, ImageNet and captions)",
    dim=1280,
    need=FrameNeed(rate=1.0, short_side=SIZE),
    licence="Apache-2.0; trained further on captions for research use",
    weights=(),
    version=2,
    span=16.0,
    default=False,
    note=f"The central square of each frame, at {SIZE} × {SIZE} pixels.",
)


class AppearanceExpert:
    """The loaded expert."""

    def __init__(self) -> None:
        self.card = CARD
        file = open_file()
        self._head = _head(file)
        self.fingerprint = self._head.fingerprint
        self._network = file.network()

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per frame, valid for `[t, t + period)`."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        batch = picture_batch()
        rows = [
            self._network(images=resize_crop(media.images[start : start + batch], SIZE))["features"]
            for start in range(0, len(media), batch)
        ]
        return Track(np.concatenate(rows), np.stack([media.times, media.times + media.period], axis=1))

    def labels(self, track: Track) -> Labels:
        """Logits of ImageNet's 1000 classes: they are linear in the pooled features."""
        return self._head.labels(track)


def load(store: WeightStore) -> AppearanceExpert:
    """Load the expert with its weights, checked; they need no store."""
    return AppearanceExpert()


def recogniser(store: WeightStore) -> ClassHead:
    """The names of ImageNet's 1000 classes from stored tracks, without the network."""
    return _shipped_head(store.root / STAMPS)


@cache
def _shipped_head(stamps: Path) -> ClassHead:
    """Several models of a process use it: it is read once."""
    return _head(open_file(stamps))


def open_file(stamps: Path | None = None) -> AppearanceFile:
    """The file that ships, checked; with `stamps`, not again where it is the file that was checked before."""
    try:
        whole = has_sha256(FILE, SHA256, stamps)
    except OSError:
        whole = False
    if not whole:
        raise WeightsCorrupt(f"{FILE} does not have the expected hash", NextStep("install wordreel again"))
    return AppearanceFile(FILE)


def _head(file: AppearanceFile) -> ClassHead:
    return ClassHead(class_names(CLASSES), *file.head(), fingerprint(CARD, SHA256))
