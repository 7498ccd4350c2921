"""Published checkpoints of models on CLIP's towers, both ways: `pytorch_model.bin.N`, a plain state dict.

Modules have the published names, so that a checkpoint is checked key by key against the module and copied.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wordreel.atomic import atomic_write
from wordreel.errors import WeightsError
from wordreel.models.clip.build import build_video_text
from wordreel.models.clip.config import Clip4ClipConfig, VideoTextConfig
from wordreel.models.clip.video_text import VideoTextModel
from wordreel.models.config import Mode
from wordreel.nets.checkpoint import check, unwrapped
from wordreel.nets.clip import read_clip4clip
from wordreel.nets.clip.frame_head import BLOCKS
from wordreel.nets.clip.infer_config import infer_config
from wordreel.nets.clip.layouts import to_huggingface
from wordreel.weights.torch_file import read_state_dict

Arrays = Mapping[str, NDArray[Any]]
TIGHT_BLOCKS = "cross.transformer.resblocks"


def load_published(path: Path, config: VideoTextConfig | None = None) -> VideoTextModel:
    """A module with the weights of a published checkpoint in float32, in evaluation mode.

    Args:
        path: The checkpoint; it is read without running anything in it.
        config: What the checkpoint is of; None infers it, with the released code's behaviour.

    Raises:
        WeightsError: The checkpoint is not of this configuration; the message names the key.
    """
    return module_from(path.name, read_state_dict(path), config)


def module_from(name: str, arrays: Arrays, config: VideoTextConfig | None = None) -> VideoTextModel:
    """`load_published` for arrays that are already read."""
    arrays = unwrapped(arrays)
    config = config or infer_video_text(name, arrays)
    with torch.device("meta"):
        module = build_video_text(config)
    shapes = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    check(arrays, shapes, {}, given=name, expected=f"a {config.kind} checkpoint of its configuration")
    state = {key: torch.from_numpy(np.array(value, np.float32)) for key, value in arrays.items()}
    module.load_state_dict(state, assign=True)
    return module.eval()


def infer_video_text(
    name: str, arrays: Arrays, mode: Mode = "released", max_frames: int = 12, max_words: int = 32
) -> VideoTextConfig:
    """The configuration of a checkpoint from its names and shapes.

    They do not tell how many frames and words the model was trained with: 12 and 32 on MSR-VTT, MSVD and
    LSMDC, 64 and 64 on ActivityNet and DiDeMo.
    """
    if not read_clip4clip.is_clip4clip(arrays):
        raise WeightsError(f"{name} is not a model on CLIP's towers: it has no weights under clip.visual")
    towers, head = read_clip4clip.split(arrays)
    patch = towers.pop(read_clip4clip.PATCH_3D, None)
    kind = read_clip4clip.head_name(head)
    layers = read_clip4clip.count_blocks(head, TIGHT_BLOCKS if kind == "tight" else BLOCKS)
    backbone = infer_config(name, to_huggingface(towers))
    return Clip4ClipConfig(
        backbone,
        kind,
        "2d" if patch is None else "3d",
        layers or Clip4ClipConfig.layers,
        max_frames=max_frames,
        max_words=min(max_words, backbone.text.length),
        mode=mode,
    )


def save_published(path: Path, module: VideoTextModel) -> None:
    """Write the state dict that the published code loads, as a whole or not at all."""
    state = OrderedDict((key, value.detach().cpu().float()) for key, value in module.state_dict().items())
    buffer = io.BytesIO()
    torch.save(state, buffer)
    atomic_write(path, buffer.getvalue())
