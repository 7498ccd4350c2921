"""The published video-text models on CLIP by name, without torch; sizes and frames are those of MSR-VTT."""

from __future__ import annotations

from functools import partial

from wordreel.models.clip.config import Clip4ClipConfig, Head, VideoTextConfig
from wordreel.models.registry import RegisteredModel

CLIP4CLIP_PAPER = "arXiv 2104.08860"
CLIP4CLIP_TITLES: dict[Head, str] = {
    "mean": "CLIP4Clip, mean of the frames (meanP)",
    "lstm": "CLIP4Clip, LSTM over the frames (seqLSTM)",
    "transformer": "CLIP4Clip, transformer over the frames (seqTransf)",
    "tight": "CLIP4Clip, transformer over caption and frames (tightTransf)",
}

VIDEO_TEXT_MODELS: dict[str, RegisteredModel[VideoTextConfig]] = {
    f"clip4clip-{head}": RegisteredModel(
        title, CLIP4CLIP_PAPER, partial(Clip4ClipConfig, head=head), released=True
    )
    for head, title in CLIP4CLIP_TITLES.items()
}
