"""What frames show: the image tower of SigLIP ViT-B/16, once a second (Zhai et al. 2023)."""

from __future__ import annotations

from wordreel.experts.base import Card
from wordreel.experts.frame_network import FrameExpert
from wordreel.experts.prepare import CENTRED, Preparation
from wordreel.media.types import FrameNeed
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["siglip_b16"]
PREPARE = Preparation(224, *CENTRED, squash=True)

CARD = Card(
    name="siglip_b16",
    modality="appearance",
    title="What frames show (SigLIP ViT-B/16)",
    dim=768,
    need=FrameNeed(rate=1.0, short_side=256),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=120.0,
    default=False,
    note="One frame a second, squeezed to 224 × 224 pixels, in the space SigLIP shares with words, not "
    f"normalised. To have it: {WEIGHTS.how}.",
)


def load(store: WeightStore) -> FrameExpert:
    """The expert, its weights checked and in memory."""
    return FrameExpert(CARD, store, PREPARE)
