"""What frames look like: pooled features of EfficientNet-Lite2, one row a second, and ImageNet's classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.experts.base import Card, fingerprint
from wordreel.experts.class_head import ClassHead, class_names, read_head
from wordreel.experts.preprocess import resize_crop
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.nets.efficientnet_lite import SIZE
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Labels, Track
from wordreel.weights.appearance_file import AppearanceFile
from wordreel.weights.store import WeightStore

WEIGHTS = "efficientnet-lite2"
FILE = Path(__file__).parent / "data" / "appearance.safetensors"
SHA256 = "27f359efbe3de5fc36e8c73ea1c19cb823278c9cc403b8682508dbbf522fcf7e"
"""Of the file."""
FILE_SIZE = 224
CLASSES = "imagenet.txt"
BATCH = 16


@dataclass(frozen=True)
class Source:
    """Where the network comes from: `size` is a picture's side in pixels, `digest` identifies the weights."""

    size: int
    weights: tuple[str, ...]
    title: str
    licence: str
    version: int
    digest: Callable[[WeightStore], str]
    network: Callable[[WeightStore], Network]
    head: Callable[[WeightStore, str], ClassHead]  # with the expert's fingerprint


def _file() -> AppearanceFile:
    """The file that ships, checked."""
    file = AppearanceFile(FILE)
    if file.digest != SHA256:
        raise WeightsCorrupt(f"{FILE} does not have the expected hash", NextStep("install wordreel again"))
    return file


PUBLISHED = Source(
    size=SIZE,
    weights=(WEIGHTS,),
    title="What frames look like (EfficientNet-Lite2, ImageNet)",
    licence="Apache-2.0",
    version=1,
    digest=lambda store: store.source_hash(WEIGHTS),
    network=lambda store: Network(store.file(WEIGHTS, "network.onnx")),
    head=lambda store, name: read_head(store.file(WEIGHTS, "head.safetensors"), CLASSES, name),
)
SHIPPED = Source(
    size=FILE_SIZE,
    weights=(),
    title="What frames look like (EfficientNet-Lite2, ImageNet and captions)",
    licence="Apache-2.0; trained further on captions for research use",
    version=2,
    digest=lambda store: SHA256,
    network=lambda store: _file().network(),
    head=lambda store, name: ClassHead(class_names(CLASSES), *_file().head(), name),
)
SOURCE = PUBLISHED
"""The one in use. The default model is trained on the features of one of them: change both together."""


def source_card(source: Source) -> Card:
    """The expert's card with the network of a source."""
    return Card(
        name="appearance",
        modality="appearance",
        title=source.title,
        dim=1280,
        need=FrameNeed(rate=1.0, short_side=source.size),
        licence=source.licence,
        weights=source.weights,
        version=source.version,
        note=f"The central square of each frame, at {source.size} × {source.size} pixels.",
    )


CARD = source_card(SOURCE)


class AppearanceExpert:
    """The loaded expert."""

    def __init__(self, store: WeightStore, source: Source = SOURCE) -> None:
        self.card = source_card(source)
        self.fingerprint = fingerprint(self.card, source.digest(store))
        self._size = source.size
        self._head = source.head(store, self.fingerprint)
        self._network = source.network(store)

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per frame, valid for `[t, t + period)`."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        rows = [
            self._network(images=resize_crop(media.images[start : start + BATCH], self._size))["features"]
            for start in range(0, len(media), BATCH)
        ]
        return Track(np.concatenate(rows), np.stack([media.times, media.times + media.period], axis=1))

    def labels(self, track: Track) -> Labels:
        """Logits of ImageNet's 1000 classes: they are linear in the pooled features."""
        return self._head.labels(track)


def load(store: WeightStore) -> AppearanceExpert:
    """Load the expert with its weights, checked."""
    return AppearanceExpert(store)


def recogniser(store: WeightStore) -> ClassHead:
    """The names of ImageNet's 1000 classes from stored tracks, without the network."""
    return SOURCE.head(store, fingerprint(CARD, SOURCE.digest(store)))
