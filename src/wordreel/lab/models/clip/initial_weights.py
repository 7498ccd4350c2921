"""Start a video-text model from a published CLIP."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from wordreel.backbones.layouts import to_openai
from wordreel.backbones.read_backbone import read_backbone
from wordreel.errors import WeightsError
from wordreel.lab.models.clip.video_text import VideoTextModel


def init_from_backbone(model: VideoTextModel, path: Path) -> None:
    """Load the towers of a CLIP, and initialise the head from its text tower.

    Args:
        model: The model; its configuration must be of this CLIP's size.
        path: A checkpoint file or folder in any layout that `read_backbone` reads.

    Raises:
        WeightsError: The checkpoint is damaged, or of another architecture; the message names the difference.
    """
    config, state = read_backbone(path)
    wanted = model.config.backbone
    for tower in ("vision", "text"):
        ours, theirs = asdict(getattr(wanted, tower)), asdict(getattr(config, tower))
        for name, value in ours.items():
            if theirs[name] != value:
                raise WeightsError(
                    f"{path} is not a {wanted.name}: its {tower}.{name} is {theirs[name]!r}, not {value!r}"
                )
    arrays = to_openai(state)
    model.load_clip({key: torch.from_numpy(np.array(arrays[key], np.float32)) for key in arrays})
