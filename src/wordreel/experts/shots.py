"""How the picture changes: small descriptors of frames, from which the library finds where shots begin.

The descriptors are stored, not the boundaries, so that a better rule for boundaries needs no new decoding.
"""

from __future__ import annotations

import numpy as np

from wordreel.experts.base import Card, ExpertEntry, fingerprint
from wordreel.media import describe
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.types import Absent, Track

DIM = 136  # what `describe` gives
CARD = Card(
    name="shots", modality="shots", title="Shots: where the picture is cut", dim=DIM,
    need=FrameNeed(rate=5.0, short_side=48), licence="Apache-2.0", weights=(), span=60.0,
    note="needs no weights",
)  # fmt: skip


class ShotsExpert:
    """Describe frames by colours, from which cuts are found."""

    card = CARD
    fingerprint = fingerprint(CARD)

    def extract(self, media: Frames | Sound) -> Track | Absent:
        if not isinstance(media, Frames):
            raise TypeError("the shots expert takes frames")
        if len(media) == 0 or (len(media) == 1 and media.times[0] == 0):
            return Absent("a still picture has no shots")
        starts = np.asarray(media.times, np.float64)
        return Track(describe(media), np.stack([starts, starts + media.period], axis=1))


EXPERTS = {CARD.name: ExpertEntry(CARD, lambda store: ShotsExpert())}
