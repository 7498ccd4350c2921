"""What moves: R(2+1)D-34 trained on 65 million Instagram videos (Liu et al. 2019).

The paper feeds 8 consecutive frames of 112 × 112 pixels at 30 a second; its released features begin a clip
every 32 frames, and so does this.
"""

from __future__ import annotations

from wordreel.experts.base import Card
from wordreel.experts.clip_network import ClipExpert, Windows
from wordreel.experts.prepare import KINETICS, Preparation
from wordreel.media.types import FrameNeed
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["r2p1d34_ig65m"]
PREPARE = Preparation(112, *KINETICS, short_side=128)
WINDOWS = Windows(8, 32)

CARD = Card(
    name="r2p1d34_ig65m",
    modality="motion",
    title="What moves (R(2+1)D-34, IG-65M)",
    dim=512,
    need=FrameNeed(rate=30.0, short_side=128),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=32.0,
    default=False,
    note="8 frames at 30 a second, of every 32; checkpoints for 32 frames or tuned on Kinetics fit as well. "
    f"To have it: {WEIGHTS.how}.",
)


def load(store: WeightStore) -> ClipExpert:
    """The expert, its weights checked and in memory."""
    return ClipExpert(CARD, store, PREPARE, WINDOWS)
