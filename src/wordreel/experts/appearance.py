"""What frames look like: pooled features of EfficientNet-Lite2, one row a second, and ImageNet's classes.

The network was trained further on captioned pictures and frames (docs/appearance.md) and comes with wordreel,
as one small safetensors file. Batch norms are folded into the convolutions. Matrices (pointwise convolutions
and the classifier) are bytes with a scale per row, kernels over space (the stem, depthwise convolutions)
float16, biases float32. The header holds the number of the format.
"""

from __future__ import annotations

import json
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
FORMAT, KEY = 1, "wordreel.appearance"
BYTES, SCALES = "/bytes", "/scales"
HEAD = "_fc."
SIZE = 224
CLASSES = "imagenet.txt"

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


class AppearanceFile:
    """A mapped file of weights.

    Raises:
        WeightsCorrupt: It is not such a file, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            about, self._stored = map_safetensors(path)
            card = json.loads(about.get(KEY, "{}"))
        except (OSError, ValueError, RecursionError) as error:
            raise self._corrupt(str(error)) from None
        written = card.get("format") if isinstance(card, dict) else None
        if written != FORMAT:
            raise self._corrupt(f"its format is {written!r:.20}, this program reads {FORMAT}")

    def network(self) -> Network:
        """Return the network with its weights: `images [n, h, w, 3]` to `features [n, 1280]`."""
        try:
            return Network(build(self.layers()).SerializeToString())
        except KeyError as error:
            raise self._corrupt(f"it has no {error.args[0]}") from None

    def layers(self) -> dict[str, Float32]:
        """Return the folded convolutions, as `efficientnet_lite.build` takes them."""
        return {name: array for name, array in self._arrays("").items() if not name.startswith(HEAD)}

    def head(self) -> tuple[Float32, Float32]:
        """Return `weight [classes, 1280]` and `bias [classes]` of the classifier."""
        arrays = self._arrays(HEAD)
        try:
            return arrays[f"{HEAD}weight"], arrays[f"{HEAD}bias"]
        except KeyError as error:
            raise self._corrupt(f"it has no {error.args[0]}") from None

    def _arrays(self, prefix: str) -> dict[str, Float32]:
        arrays: dict[str, Float32] = {}
        for name, array in self._stored.items():
            if name.endswith(SCALES) or not name.startswith(prefix):
                continue
            if not name.endswith(BYTES):
                arrays[name] = array.astype(np.float32)
                continue
            whole = name.removesuffix(BYTES)
            scales = self._stored.get(whole + SCALES)
            if scales is None:
                raise self._corrupt(f"it has no {whole + SCALES}")
            if array.ndim != 2 or scales.shape != array.shape[:1]:
                raise self._corrupt(f"{whole} has no scale for each row")
            matrix = dequantise(array, scales)
            arrays[whole] = matrix if whole.startswith(HEAD) else matrix[..., None, None]
        return arrays

    def _corrupt(self, why: str) -> WeightsCorrupt:
        return WeightsCorrupt(
            f"{self._path} is not a whole appearance network ({why})", NextStep("install wordreel again")
        )


class AppearanceExpert:
    """The loaded expert; its weights come with wordreel and need no store."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        self.fingerprint = fingerprint(CARD, SHA256)
        self._network = open_file().network()

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
    return ClassHead(class_names(CLASSES), *open_file(stamps).head(), fingerprint(CARD, SHA256))


def open_file(stamps: Path | None = None) -> AppearanceFile:
    """Open the file that ships; with `stamps`, it is not checked again where it was checked before."""
    try:
        whole = has_sha256(FILE, SHA256, stamps)
    except OSError:
        whole = False
    if not whole:
        raise WeightsCorrupt(f"{FILE} does not have the expected hash", NextStep("install wordreel again"))
    return AppearanceFile(FILE)
