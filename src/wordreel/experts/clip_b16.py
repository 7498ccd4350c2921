"""What frames show: the image tower of CLIP ViT-B/16, once a second (Luo et al. 2021)."""

from __future__ import annotations

from wordreel.experts.base import Card
from wordreel.experts.frame_network import FrameExpert
from wordreel.experts.prepare import CLIP, Preparation
from wordreel.media.types import FrameNeed
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["clip_b16"]
PREPARE = Preparation(224, *CLIP)

CARD = Card(
    name="clip_b16",
    modality="appearance",
    title="What frames show (CLIP ViT-B/16)",
    dim=512,
    need=FrameNeed(rate=1.0, short_side=224),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=120.0,
    default=False,
    note="The middle of one frame a second, in the space CLIP shares with words, not normalised. "
    f"To have it: {WEIGHTS.how}.",
)


def load(store: WeightStore) -> FrameExpert:
    """The expert, its weights checked and in memory."""
    return FrameExpert(CARD, store, PREPARE)
