"""The published video-text models on CLIP by name, without torch; sizes and frames are those of MSR-VTT."""

from __future__ import annotations

from functools import partial

from wordreel.lab.models.clip.config import (
    Clip2VideoConfig,
    Clip4ClipConfig,
    Head,
    TS2NetConfig,
    VideoTextConfig,
)
from wordreel.lab.models.registry import RegisteredModel

CLIP4CLIP_PAPER, CLIP2VIDEO_PAPER, TS2NET_PAPER = "arXiv 2104.08860", "arXiv 2106.11097", "arXiv 2207.07852"
CLIP4CLIP_TITLES: dict[Head, str] = {
    "mean": "CLIP4Clip, mean of the frames (meanP)",
    "lstm": "CLIP4Clip, LSTM over the frames (seqLSTM)",
    "transformer": "CLIP4Clip, transformer over the frames (seqTransf)",
    "tight": "CLIP4Clip, transformer over caption and frames (tightTransf)",
}

VIDEO_TEXT_MODELS: dict[str, RegisteredModel[VideoTextConfig]] = {
    **{
        f"clip4clip-{head}": RegisteredModel(
            title, CLIP4CLIP_PAPER, partial(Clip4ClipConfig, head=head), released=True
        )
        for head, title in CLIP4CLIP_TITLES.items()
    },
    "clip2video-msrvtt": RegisteredModel(
        "CLIP2Video, 5 centres (MSR-VTT, MSVD)", CLIP2VIDEO_PAPER, Clip2VideoConfig, released=True
    ),
    "clip2video-vatex": RegisteredModel(
        "CLIP2Video, 7 centres (VATEX)",
        CLIP2VIDEO_PAPER,
        partial(Clip2VideoConfig, centres=7, frame_rate=5.0),
        released=True,
    ),
    "ts2net": RegisteredModel("TS2-Net", TS2NET_PAPER, TS2NetConfig, released=True),
    "ts2net-long": RegisteredModel(
        "TS2-Net, 64 frames and words (ActivityNet, DiDeMo)",
        TS2NET_PAPER,
        partial(TS2NetConfig, positions=256, max_frames=64, max_words=64),
    ),
}
