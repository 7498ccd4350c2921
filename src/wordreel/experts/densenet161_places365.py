"""Where it is: DenseNet-161 trained on Places365, once a second (Liu et al. 2019, Gabeur et al. 2020)."""

from __future__ import annotations

from wordreel.experts.base import Card
from wordreel.experts.frame_network import FrameExpert
from wordreel.experts.prepare import IMAGENET, Preparation
from wordreel.media.types import FrameNeed
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["densenet161_places365"]
PREPARE = Preparation(224, *IMAGENET, short_side=256)

CARD = Card(
    name="densenet161_places365",
    modality="scene",
    title="Where it is (DenseNet-161, Places365)",
    dim=2208,
    need=FrameNeed(rate=1.0, short_side=256),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=120.0,
    default=False,
    note=f"The middle of one frame a second. To have it: {WEIGHTS.how}.",
)


def load(store: WeightStore) -> FrameExpert:
    """The expert, its weights checked and in memory."""
    return FrameExpert(CARD, store, PREPARE)
