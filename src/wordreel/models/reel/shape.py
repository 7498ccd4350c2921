"""The sizes of the model, and what it reads of each expert."""

from __future__ import annotations

from dataclasses import dataclass

DIM = 384
LAYERS = 2
HEADS = 8
WIDE = 2 * DIM  # of the transformer's inner layer
HIDDEN = 1024  # of the caption's two-layer part
TEXT = 384  # of the sentence encoder
EPSILON = 1e-5


@dataclass(frozen=True)
class Seen:
    """An expert whose rows are averaged into at most `most` stretches of time, a token each."""

    name: str
    dim: int
    most: int


SEEN = (
    Seen("appearance", 1280, 4),
    Seen("motion", 1024, 3),
    Seen("faces", 128, 1),
    Seen("ocr", 384, 1),
    Seen("speech", 384, 1),
    Seen("sound", 1024, 2),
)
