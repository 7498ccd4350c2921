"""What frames look like: pooled features of EfficientNet-Lite2, one row a second, and ImageNet's classes.

The network was trained further on captioned pictures and frames (docs/appearance.md) and comes with wordreel,
as one small safetensors file. Batch norms are folded into the convolutions. Matrices (pointwise convolutions
and the classifier) are bytes with a scale per row, kernels over space (the stem, depthwise convolutions)
float16, biases float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.experts.base import Card, ExpertEntry, fingerprint, frame_track
from wordreel.experts.preprocess import resize_crop
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.mapped_arrays import dequantise, map_safetensors
from wordreel.runtime.nets.efficientnet_lite import build
from wordreel.runtime.sessions import Network, picture_batch
from wordreel.runtime.stamped_hash import STAMPS, has_sha256
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Labels, Track

FILE = Path(__file__).parent / "data" / "appearance.safetensors"
SHA256 = "fe093dce98867c36eb35da4d0b5e57d8b480c691536ec3382b765d0e0e1a8a86"
"""Of the file. The default model is trained on the features of one network: change both together."""
BYTES, SCALES = "/bytes", "/scales"
HEAD = "_fc."
SIZE = 224
CLASSES = "imagenet.txt"

CARD = Card(
    name="appearance", modality="appearance",
    title="What frames look like (EfficientNet-Lite2, ImageNet and captions)", dim=1280,
    need=FrameNeed(rate=1.0, short_side=SIZE),
    licence="Apache-2.0; trained further on captions for research use", weights=(), version=2, span=16.0,
    default=False, note=f"The central square of each frame, at {SIZE} × {SIZE} pixels.",
)  # fmt: skip


@dataclass(frozen=True)
class ClassHead:
    """The last linear layer of a network, which classifies stored features without the network.

    `weight [classes, dim]` and `bias [classes]`: logits are linear in the pooled features.
    """

    names: tuple[str, ...]
    weight: Float32
    bias: Float32
    fingerprint: str  # of the expert whose tracks it reads

    def labels(self, track: Track) -> Labels:
        """Return one row of logits per row of the track."""
        return Labels(self.names, track.values @ self.weight.T + self.bias, track.times)


@cache
def class_names(file: str) -> tuple[str, ...]:
    """Return the class names in a file of `experts/data`, one a line in output order; # starts a comment.

    >>> class_names("kinetics400.txt")[:2]
    ('abseiling', 'air drumming')
    """
    text = (files("wordreel.experts") / "data" / file).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if not line.startswith("#"))


def read_arrays(file: Path, prefix: str = "") -> dict[str, Float32]:
    """Return the arrays of a file whose names begin with a prefix, matrices from their bytes and scales."""
    arrays: dict[str, Float32] = {}
    _, stored = map_safetensors(file)
    for name, array in stored.items():
        if not name.startswith(prefix) or name.endswith(SCALES):
            continue
        whole = name.removesuffix(BYTES)
        if name == whole:
            arrays[name] = array.astype(np.float32)
        else:
            matrix = dequantise(array, stored[whole + SCALES])
            arrays[whole] = matrix if whole.startswith(HEAD) else matrix[..., None, None]
    return arrays


def open_network() -> Network:
    """Load the network with its weights, checked: `images [n, h, w, 3]` to `features [n, 1280]`."""
    return Network(build(read_arrays(checked_file())).SerializeToString())


class AppearanceExpert:
    """The loaded expert; its weights come with wordreel and need no store."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        self.fingerprint = fingerprint(CARD, SHA256)
        self._network = open_network()

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return one row per frame, valid for `[t, t + period)`."""
        return frame_track(media, self._rows, picture_batch())

    def _rows(self, images: NDArray[np.uint8]) -> Float32:
        return self._network(images=resize_crop(images, SIZE))["features"]


def recogniser(store: WeightStore) -> ClassHead:
    """Return what names ImageNet's 1000 classes in stored tracks, without the network."""
    return _shipped_head(store.root / STAMPS)


EXPERTS = {CARD.name: ExpertEntry(CARD, AppearanceExpert, recogniser=recogniser)}


@cache
def _shipped_head(stamps: Path) -> ClassHead:
    """Several models of a process use it: it is read once."""
    arrays = read_arrays(checked_file(stamps), HEAD)
    weight, bias = arrays[f"{HEAD}weight"], arrays[f"{HEAD}bias"]
    return ClassHead(class_names(CLASSES), weight, bias, fingerprint(CARD, SHA256))


def checked_file(stamps: Path | None = None) -> Path:
    """Return the file that ships, checked; with `stamps`, not again where it was checked before."""
    try:
        whole = has_sha256(FILE, SHA256, stamps)
    except OSError:
        whole = False
    if not whole:
        raise WeightsCorrupt(f"{FILE} does not have the expected hash", NextStep("install wordreel again"))
    return FILE
