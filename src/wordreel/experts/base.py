"""What an expert is: a card that describes it, and an object that turns media into a track."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

from wordreel.media.types import AudioNeed, FrameNeed, Frames, Sound
from wordreel.types import Absent, Float32, Labels, Track


@dataclass(frozen=True)
class Card:
    """Everything there is to know of an expert without loading it.

    `need` is what it wants decoded; `span` is how many seconds of it one `extract` call gets at most
    (the library cuts longer videos and joins the tracks). `version` is raised by hand whenever the
    preprocessing or the code changes what comes out: it is part of the fingerprint.
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
    default: bool = True
    note: str = ""


class Expert(Protocol):
    """A loaded expert."""

    card: Card
    fingerprint: str

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Features of up to `card.span` seconds of media; times are seconds of the whole video."""
        ...

    def labels(self, track: Track) -> Labels | None:
        """What is recognised in a stored track, or None for experts that name nothing."""
        ...


class Recogniser(Protocol):
    """The part of an expert that names what a stored track shows; it loads without the network.

    `weight [classes, …]` is the layer that makes the scores: what can vary in them, varies along it.
    """

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def weight(self) -> Float32: ...
    @property
    def fingerprint(self) -> str: ...
    def labels(self, track: Track) -> Labels: ...


def fingerprint(card: Card, *weight_hashes: str) -> str:
    """Name this expert, its code version, what it is fed and its exact weights in 16 hex digits."""
    parts = (card.name, str(card.version), str(card.dim), repr(card.need), *weight_hashes)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
