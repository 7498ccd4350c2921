"""The image tower of an installed CLIP-like backbone as an expert: one embedding a second."""

from __future__ import annotations

import numpy as np

from wordreel.backbones.backbone import Backbone
from wordreel.backbones.config import BackboneConfig
from wordreel.experts.base import Card, fingerprint
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.types import Absent, Labels, Track


def backbone_card(config: BackboneConfig, licence: str) -> Card:
    """The card of the expert; it has the backbone's name."""
    size = config.transform.size
    rate = config.head.rate if config.head is not None else 1.0
    return Card(
        name=config.name,
        modality="appearance",
        title=f"What frames show ({config.name})",
        dim=config.dim,
        need=FrameNeed(rate=rate, short_side=size),
        licence=licence,
        weights=(),  # the backbone store has them
        span=16.0,
        default=False,
        note=f"Frames at {rate:g} a second and {size} × {size} pixels, in the space shared with text, not "
        "normalised.",
    )


class BackboneExpert:
    """The loaded expert."""

    def __init__(self, card: Card, backbone: Backbone) -> None:
        self.card = card
        self.fingerprint = expert_fingerprint(card, backbone)
        self._backbone = backbone

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per frame, valid for `[t, t + period)`."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        rows = self._backbone.images(media.images)
        return Track(rows, np.stack([media.times, media.times + media.period], axis=1))

    def labels(self, track: Track) -> Labels | None:
        return None


def expert_fingerprint(card: Card, backbone: Backbone) -> str:
    """Identifies the frames asked for and the backbone: its weights, precision and transform."""
    return fingerprint(card, backbone.fingerprint)
