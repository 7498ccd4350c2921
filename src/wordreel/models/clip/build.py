"""From the configuration of a video-text model to a module with fresh weights."""

from __future__ import annotations

from wordreel.models.clip.clip4clip import Clip4Clip
from wordreel.models.clip.config import VideoTextConfig
from wordreel.models.clip.video_text import VideoTextModel


def build_video_text(config: VideoTextConfig) -> VideoTextModel:
    """Initialised as published: the towers as OpenAI's CLIP is, heads from its text tower."""
    return Clip4Clip(config)
