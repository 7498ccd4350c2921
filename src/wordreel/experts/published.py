"""Experts that are one published checkpoint, as a table: card, preprocessing, and windows for motion.

To add one, append its weights to `runtime/data/weights.json` and a row here. Experts with code of their own
(VGGish, faces) are modules; see `registry`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.experts.base import Card, Expert
from wordreel.experts.network_experts import FrameExpert, FrameWindows, WindowExpert
from wordreel.experts.preprocess import CENTRED, IMAGENET, KINETICS, Preprocess
from wordreel.media.types import FrameNeed
from wordreel.runtime.store import WeightStore
from wordreel.runtime.weight_table import PUBLISHED


@dataclass(frozen=True)
class PublishedExpert:
    """One row of the table. `windows` is None for networks over single frames."""

    card: Card
    preprocess: Preprocess
    windows: FrameWindows | None = None
    raw_pixels: bool = False  # the network takes bytes and scales them itself

    def load(self, store: WeightStore) -> Expert:
        """Load the expert; raises `WeightsError` if its weights are missing or damaged."""
        if self.windows is None:
            return FrameExpert(self.card, store, self.preprocess)
        return WindowExpert(self.card, store, self.preprocess, self.windows, self.raw_pixels)


def published_card(
    name: str, modality: str, title: str, dim: int, need: FrameNeed, span: float, note: str
) -> Card:
    """The card of an expert whose weights are published under its name."""
    weights = PUBLISHED[name]
    how = weights.next_step().for_command_line()
    return Card(
        name=name,
        modality=modality,
        title=title,
        dim=dim,
        need=need,
        licence=weights.licence,
        weights=(name,),
        span=span,
        default=False,
        note=f"{note} To get it: {how}.",
    )


_TABLE = (
    # SENet-154 on ImageNet, 25 frames a second (Liu et al. 2019)
    PublishedExpert(
        published_card(
            "senet154", "appearance", "What frames show (SENet-154, ImageNet)", 2048,
            FrameNeed(25.0, 256), 20.0,
            "Every frame, resized to 224 × 224 pixels.",
        ),
        Preprocess(224, *IMAGENET, squash=True),
    ),
    # ResNeXt-101 on Instagram hashtags, 25 frames a second (Liu et al. 2019)
    PublishedExpert(
        published_card(
            "resnext101_wsl", "appearance", "What frames show (ResNeXt-101 32x48d, Instagram)", 2048,
            FrameNeed(25.0, 256), 20.0,
            "Every frame, resized to 224 × 224 pixels; needs 5 GB of memory, twice that to add.",
        ),
        Preprocess(224, *IMAGENET, squash=True),
    ),
    # I3D over 64 frames at 25 a second, a window every second (Liu et al. 2019)
    PublishedExpert(
        published_card(
            "i3d_paper", "motion", "What moves (I3D, Kinetics-400, as in the papers)", 1024,
            FrameNeed(25.0, 256), 20.0,
            "64 frames at 25 a second, a new window every second.",
        ),
        Preprocess(224, *CENTRED, short_side=256),
        FrameWindows(64, 25),
        raw_pixels=True,
    ),
    # S3D on Kinetics-400, the motion expert of Gabeur et al. (2020). They do not state how clips were cut;
    # here a row is one second, 30 frames at 30 a second.
    PublishedExpert(
        published_card(
            "s3d", "motion", "What moves (S3D, Kinetics-400)", 1024, FrameNeed(30.0, 256), 20.0,
            "30 frames at 30 a second, without overlap.",
        ),
        Preprocess(224, *CENTRED, short_side=256),
        FrameWindows(30, 30),
    ),
    # R(2+1)D-34 on 65 million Instagram videos (Liu et al. 2019). The paper feeds 8 consecutive frames of
    # 112 × 112 pixels at 30 a second; its released features start a clip every 32 frames, and so does this.
    PublishedExpert(
        published_card(
            "r2p1d34_ig65m", "motion", "What moves (R(2+1)D-34, IG-65M)", 512, FrameNeed(30.0, 128), 32.0,
            "8 frames at 30 a second, of every 32; checkpoints for 32 frames or tuned on Kinetics also fit.",
        ),
        Preprocess(112, *KINETICS, short_side=128),
        FrameWindows(8, 32),
    ),
    # DenseNet-161 on Places365, once a second (Liu et al. 2019, Gabeur et al. 2020)
    PublishedExpert(
        published_card(
            "densenet161_places365", "scene", "Where it is (DenseNet-161, Places365)", 2208,
            FrameNeed(1.0, 256), 120.0,
            "The centre of one frame a second.",
        ),
        Preprocess(224, *IMAGENET, short_side=256),
    ),
)  # fmt: skip

EXPERTS: dict[str, PublishedExpert] = {expert.card.name: expert for expert in _TABLE}
