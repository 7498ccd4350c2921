"""What moves: S3D trained on Kinetics-400, the motion expert of Gabeur et al. (2020).

How their clips were cut is not stated; here a row is one second, 30 frames at 30 a second.
"""

from __future__ import annotations

from wordreel.experts.base import Card
from wordreel.experts.clip_network import ClipExpert, Windows
from wordreel.experts.prepare import CENTRED, Preparation
from wordreel.media.types import FrameNeed
from wordreel.weights.hub_entries import ALL
from wordreel.weights.store import WeightStore

WEIGHTS = ALL["s3d"]
PREPARE = Preparation(224, *CENTRED, short_side=256)
WINDOWS = Windows(30, 30)

CARD = Card(
    name="s3d",
    modality="motion",
    title="What moves (S3D, Kinetics-400)",
    dim=1024,
    need=FrameNeed(rate=30.0, short_side=256),
    licence=WEIGHTS.licence,
    weights=(WEIGHTS.name,),
    span=20.0,
    default=False,
    note=f"30 frames at 30 a second, without overlap. To have it: {WEIGHTS.how}.",
)


def load(store: WeightStore) -> ClipExpert:
    """The expert, its weights checked and in memory."""
    return ClipExpert(CARD, store, PREPARE, WINDOWS)
