"""From the configuration of a video-text model to a module with fresh weights."""

from __future__ import annotations

from wordreel.lab.models.clip.clip2video import Clip2Video
from wordreel.lab.models.clip.clip4clip import Clip4Clip
from wordreel.lab.models.clip.config import Clip2VideoConfig, TS2NetConfig, VideoTextConfig
from wordreel.lab.models.clip.ts2net import TS2Net
from wordreel.lab.models.clip.video_text import VideoTextModel


def build_video_text(config: VideoTextConfig) -> VideoTextModel:
    """Initialised as published: the towers as OpenAI's CLIP is, heads from its text tower."""
    if isinstance(config, Clip2VideoConfig):
        return Clip2Video(config)
    return TS2Net(config) if isinstance(config, TS2NetConfig) else Clip4Clip(config)
