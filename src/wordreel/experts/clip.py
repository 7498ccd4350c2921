"""What frames show: unit vectors in the joint space of pictures and words, from large or small eyes.

The large eyes are the frozen image tower of CLIP ViT-B/16 (Radford et al. 2021), whose weights are fetched.
The small eyes come with wordreel and see less, in the same space. They make the quick pass, and the thorough
one where the large ones are not on this machine or `WORDREEL_EYES=small` says so. A track's fingerprint tells
which eyes made it; `add` replaces tracks of small eyes once it has large ones, never the other way round.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import WeightsCorrupt, WeightsMissing
from wordreel.experts import small_eyes
from wordreel.experts.base import Card, ExpertEntry, IncrementalExpert, fingerprint, frame_track
from wordreel.experts.frame_policy import POLICY, middle, stretches
from wordreel.experts.preprocess import Preprocess
from wordreel.media.shot_detection import describe
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.nets.clip_tower import INPUT, OUTPUT, SIZE, in_float
from wordreel.runtime.sessions import Network, accelerated, in_batches, picture_batch
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Track

WEIGHTS = "clip-image-tower"
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
PREPROCESS = Preprocess(SIZE, MEAN, DEVIATION)
EYES_VARIABLE = "WORDREEL_EYES"

CARD = Card(
    name="clip", modality="appearance", title="What frames show (CLIP ViT-B/16, or small eyes)", dim=512,
    need=FrameNeed(rate=POLICY.rate, short_side=SIZE, accurate=True), licence="MIT", weights=(WEIGHTS,),
    span=32.0, same_cosine=0.95,
    note="A frame for every 2 to 4 s of a shot; the central square at 224 × 224 pixels.",
)  # fmt: skip

Squares = NDArray[np.uint8]  # [n, 224, 224, 3]
Eyes = Callable[[Squares], Float32]
"""Pictures to embeddings `[n, 512]` of any length."""


class ClipExpert(IncrementalExpert):
    """The loaded expert; as an incremental one it chooses among the frames of a chunk."""

    card = CARD

    def __init__(self, eyes: Eyes, name: str) -> None:
        self._eyes = eyes
        self.fingerprint = name

    def begin(self) -> ClipChunk:
        return ClipChunk(self.see)

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return one row per frame, valid for `[t, t + period)`."""
        return frame_track(media, lambda images: self.see(PREPROCESS.crop(images)))

    def see(self, squares: Squares) -> Float32:
        """Return unit embeddings of pictures."""
        rows = self._eyes(squares)
        units: Float32 = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return units


class ClipChunk:
    """One row per stretch of a chunk, from the frame in its middle; rows cover the chunk without a gap."""

    def __init__(self, see: Eyes) -> None:
        self._see = see
        self._squares: list[Squares] = []
        self._descriptors: list[Float32] = []
        self._times: list[float] = []
        self._period = 0.0

    def push(self, media: Frames) -> None:
        if len(media) == 0:
            return
        self._squares.append(PREPROCESS.crop(media.images))
        self._descriptors.append(describe(Frames(media.images[:, ::4, ::4], media.times, media.period)))
        self._times += media.times.tolist()
        self._period = media.period

    def finish(self) -> Track | Absent:
        if not self._times:
            return Absent("no frames")
        times = np.array(self._times)
        found = stretches(np.concatenate(self._descriptors), times)
        squares = np.concatenate(self._squares)[[middle(stretch) for stretch in found]]
        edges = np.append(times, times[-1] + self._period)
        return Track(self._see(squares), np.array([[edges[first], edges[end]] for first, end in found]))


class _Tower:
    """CLIP's image tower."""

    def __init__(self, file: Path) -> None:
        self._network = Network(in_float(file) if accelerated() else file)

    def __call__(self, squares: Squares) -> Float32:
        return in_batches(
            lambda part: self._network(**{INPUT: PREPROCESS(part)})[OUTPUT], squares, picture_batch()
        )


def load(store: WeightStore) -> ClipExpert:
    """Load the expert with the large eyes, or with the small ones where it has to be those."""
    if not small_wanted():
        try:
            return ClipExpert(_Tower(store.file(WEIGHTS)), large_fingerprint())
        except (WeightsMissing, WeightsCorrupt):
            pass  # the command line has fetched them if it could, and said so if not
    return load_quick(store)


def load_quick(store: WeightStore) -> ClipExpert:
    """Load the expert with the small eyes, which need no store."""
    return ClipExpert(small_eyes.SmallEyes(small_eyes.FILE), small_fingerprint())


EXPERTS = {CARD.name: ExpertEntry(CARD, load, load_quick)}


def small_wanted() -> bool:
    """Return whether `WORDREEL_EYES` asks for the small eyes, as on a slow machine."""
    return os.environ.get(EYES_VARIABLE) == "small"


def large_fingerprint() -> str:
    """Return the fingerprint of the large eyes, wherever the weights came from; they need not be here."""
    return fingerprint(CARD, WeightStore().source_hash(WEIGHTS))


def small_fingerprint() -> str:
    """Return the fingerprint of the small eyes."""
    return fingerprint(CARD, "small eyes", small_eyes.digest(small_eyes.FILE))


def eyes_of(fingerprint: str) -> str:
    """Say which eyes made a track, in words; empty if they are of another version.

    >>> eyes_of("quick-" + large_fingerprint())
    'CLIP ViT-B/16'
    """
    name = fingerprint.removeprefix("quick-")
    if name == large_fingerprint():
        return "CLIP ViT-B/16"
    with suppress(WeightsCorrupt):
        return "small eyes" if name == small_fingerprint() else ""
    return ""


def is_better(have: str, wanted: str) -> bool:
    """Return whether a track of one fingerprint is better than one of another would be."""
    return have == large_fingerprint() and wanted == small_fingerprint()
