"""What frames show: ResNeXt-101 trained on Instagram hashtags, 25 frames a second (Liu et al. 2019)."""

from __future__ import annotations

from wordreel.experts.base import Card
from wordreel.experts.frame_network import FrameExpert
from wordreel.experts.prepare import IMAGENET, Preparation
from wordreel.media.types import FrameNeed
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["resnext101_wsl"]
PREPARE = Preparation(224, *IMAGENET, squash=True)

CARD = Card(
    name="resnext101_wsl",
    modality="appearance",
    title="What frames show (ResNeXt-101 32x48d, Instagram)",
    dim=2048,
    need=FrameNeed(rate=25.0, short_side=256),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=20.0,
    default=False,
    note="Every frame, squeezed to 224 × 224 pixels; needs 5 GB of memory, twice that to add. "
    f"To have it: {WEIGHTS.how}.",
)


def load(store: WeightStore) -> FrameExpert:
    """The expert, its weights checked and in memory."""
    return FrameExpert(CARD, store, PREPARE)
