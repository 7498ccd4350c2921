"""From a configuration to a module with fresh weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

from wordreel.lab.models.batch import JointEmbedding
from wordreel.lab.models.ce import CE
from wordreel.lab.models.clip.clip2video import Clip2Video
from wordreel.lab.models.clip.clip4clip import Clip4Clip
from wordreel.lab.models.clip.config import Clip2VideoConfig, Clip4ClipConfig, TS2NetConfig, VideoTextConfig
from wordreel.lab.models.clip.ts2net import TS2Net
from wordreel.lab.models.clip.video_text import VideoTextModel
from wordreel.lab.models.config import CEConfig, ConcatConfig, MMTConfig, ModelConfig, MoEEConfig
from wordreel.lab.models.mmt import MMT
from wordreel.lab.models.moee import Concat, MoEE

MODULES: Mapping[type[ModelConfig | VideoTextConfig], Callable[[Any], Any]] = {
    MoEEConfig: MoEE,
    ConcatConfig: Concat,
    CEConfig: CE,
    MMTConfig: MMT,
    Clip4ClipConfig: Clip4Clip,
    Clip2VideoConfig: Clip2Video,
    TS2NetConfig: TS2Net,
}


@overload
def build(config: ModelConfig) -> JointEmbedding: ...
@overload
def build(config: VideoTextConfig) -> VideoTextModel: ...
def build(config: ModelConfig | VideoTextConfig) -> JointEmbedding | VideoTextModel:
    """Return a module initialised as published.

    That is torch's defaults for CE and MoEE, N(0, 0.02²) for transformers; CLIP's towers start as OpenAI's,
    and heads over frames from the text tower.
    """
    module: JointEmbedding | VideoTextModel = MODULES[type(config)](config)
    return module
