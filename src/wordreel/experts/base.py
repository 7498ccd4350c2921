"""What an expert is: a card that describes it, and an object that turns media into a track."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.media.types import AudioNeed, FrameNeed, Frames, Sound
from wordreel.runtime.sessions import in_batches
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Labels, Track


@dataclass(frozen=True)
class Card:
    """Everything about an expert that is known without loading it.

    `need` is the media it takes; `span` is the most seconds of it per `extract` call (the library splits
    longer videos and concatenates the tracks). Sound is split at the quietest moment of the `quiet` seconds
    before. `same_cosine` is the least cosine between the rows that two processors, which round differently,
    compute of the same media. `version` is raised by hand whenever preprocessing or code changes the output:
    name, version, dim and need are part of the fingerprint. Tracks with a fingerprint in `also`, of earlier
    versions, serve as well.
    """

    name: str
    modality: str
    title: str
    dim: int
    need: FrameNeed | AudioNeed
    licence: str
    weights: tuple[str, ...]
    version: int = 1
    span: float = 60.0
    quiet: float = 0.0
    default: bool = True
    note: str = ""
    same_cosine: float = 0.999
    also: frozenset[str] = frozenset()


class Expert(Protocol):
    """A loaded expert."""

    card: Card
    fingerprint: str

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return features of up to `card.span` seconds of media; times are seconds of the whole video."""
        ...


class ChunkReader(Protocol):
    """Takes the frames of one chunk piece by piece, in order, and returns its track at the end."""

    def push(self, media: Frames) -> None: ...
    def finish(self) -> Track | Absent: ...


class IncrementalExpert(ABC):
    """An expert that needs no chunk as a whole, so that a minute of large frames is never held at once."""

    @abstractmethod
    def begin(self) -> ChunkReader:
        """Start a chunk."""

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return the track of a chunk that is there as a whole."""
        reader = self.begin()
        if isinstance(media, Frames):
            reader.push(media)
        return reader.finish()


class Recogniser(Protocol):
    """The classifier of an expert, which scores stored tracks without its network.

    `weight [classes, …]` is the layer that computes the scores.
    """

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def weight(self) -> Float32: ...
    @property
    def fingerprint(self) -> str: ...
    def labels(self, track: Track) -> Labels: ...


@dataclass(frozen=True)
class ExpertEntry:
    """How an expert is loaded.

    `load_quick` gives its cheaper variant for the quick pass, `recogniser` its classifier, where it has one.
    """

    card: Card
    load: Callable[[WeightStore], Expert]
    load_quick: Callable[[WeightStore], Expert] | None = None
    recogniser: Callable[[WeightStore], Recogniser] | None = None


def frame_track(
    media: Frames | Sound, embed: Callable[[NDArray[np.uint8]], Float32], batch: int = 0
) -> Track | Absent:
    """Return one row per frame, valid for `[t, t + period)`; `embed` gets at most `batch` images at once."""
    if not isinstance(media, Frames) or len(media) == 0:
        return Absent("no frames")
    rows = in_batches(embed, media.images, batch or len(media))
    return Track(rows, np.stack([media.times, media.times + media.period], axis=1))


def fingerprint(card: Card, *weight_hashes: str) -> str:
    """Identify an expert, its version, its input and its exact weights in 16 hex digits."""
    parts = (card.name, str(card.version), str(card.dim), repr(card.need), *weight_hashes)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
