"""What is heard: VGGish, 128 numbers for each 0.96 s (Hershey et al. 2017).

The raw output of the network, as the papers use it; the whitening and 8-bit rounding that AudioSet's released
features went through are not applied.
"""

from __future__ import annotations

import numpy as np

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.log_mel import HOP, PATCH, RATE, patches
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Labels, Track
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["vggish"]
STEP = PATCH * HOP  # samples
SECONDS = STEP / RATE
LEAST = 0.25  # seconds: a shorter sound says nothing, a longer one is filled up with silence
BATCH = 32

CARD = Card(
    name="vggish",
    modality="sound",
    title="What is heard (VGGish)",
    dim=128,
    need=AudioNeed(rate=RATE),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=60 * SECONDS,
    default=False,
    note=f"A row per 0.96 s of sound, raw embeddings. To have it: {WEIGHTS.how}.",
)


class VGGishExpert:
    """The loaded expert."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        folder = store.folder(WEIGHTS.name)
        self.fingerprint = fingerprint(CARD, store.source_hash(WEIGHTS.name))
        self._network = Network(folder / "network.onnx")

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per 0.96 s; only a sound that is shorter as a whole is filled up with silence."""
        if not isinstance(media, Sound) or len(media.samples) == 0:
            return Absent("no sound")
        if media.rate != RATE:
            raise ValueError(f"VGGish takes sound at {RATE} samples a second, got {media.rate}")
        samples = media.samples
        if media.start < SECONDS and LEAST <= media.seconds < SECONDS:
            samples = np.append(samples, np.zeros(STEP - len(samples), np.float32))
        heard = patches(samples)
        if not len(heard):
            return Absent("the sound is too short")
        rows = [
            self._network(patches=heard[start : start + BATCH])["features"]
            for start in range(0, len(heard), BATCH)
        ]
        starts = media.start + SECONDS * np.arange(len(heard))
        ends = np.minimum(starts + SECONDS, media.start + media.seconds)
        return Track(np.concatenate(rows), np.stack([starts, ends], axis=1))

    def labels(self, track: Track) -> Labels | None:
        return None


def load(store: WeightStore) -> VGGishExpert:
    """The expert, its weights checked and in memory."""
    return VGGishExpert(store)
