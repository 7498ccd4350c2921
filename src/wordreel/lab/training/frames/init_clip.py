"""The weights that training of a video-text model starts from, and which of them stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.checkpoints.clip import init_from_clip
from wordreel.lab.checkpoints.video_text import load_published
from wordreel.lab.models.checkpoint import load_video_text
from wordreel.lab.models.clip.video_text import VideoTextModel
from wordreel.lab.training.settings import StartSettings
from wordreel.models.model_store import find_checkpoint

ALWAYS_TRAINED = re.compile(
    r"(ln_final|visual\.ln_post|visual\.conv2)\.|(text_projection|logit_scale|visual\.proj)$"
)
BLOCK = re.compile(r"(?:visual\.)?transformer\.resblocks\.(\d+)\.")


def init_video_text(module: VideoTextModel, start: StartSettings) -> None:
    """Fill in the weights that the settings name, freeze layers and switch on checkpointing."""
    if start.model:
        fine_tune(module, Path(start.model))
    elif start.backbone:
        init_from_clip(module, Path(start.backbone).expanduser())
    elif not start.scratch:
        raise TrainingError(
            "this recipe fine-tunes a CLIP, and none is named",
            NextStep(
                "name a Hugging Face folder, a checkpoint file or a trained model",
                "train videos … --backbone PATH",
            ),
        )
    freeze(module, start.frozen_layers)
    module.clip.set_gradient_checkpointing(start.checkpointing)


def fine_tune(module: VideoTextModel, path: Path) -> None:
    """Start from the towers of another model, and from its head where it is the same.

    `path` is a training's folder or a published checkpoint.
    """
    path = path.expanduser()
    other = load_published(path) if path.is_file() else load_video_text(find_checkpoint(path))[0]
    module.load_clip(other.clip.state_dict())
    if other.config.kind == module.config.kind:
        ours, theirs = module.state_dict(), other.state_dict()
        alike = {name: value for name, value in theirs.items() if name in ours}
        alike = {name: value for name, value in alike.items() if ours[name].shape == value.shape}
        module.load_state_dict({**ours, **alike})


def freeze(module: VideoTextModel, layers: int) -> None:
    """Freeze the first blocks of both towers and what is before them, as CLIP4Clip does; -1: nothing.

    CLIP4Clip's own code freezes nothing when the patch is 3-D, for a mistake in a condition; here a 3-D patch
    trains and the rest follows the rule (-1 does as that code).
    """
    if layers < 0:
        return
    for name, p in module.clip.named_parameters():
        block = BLOCK.match(name)
        trained = ALWAYS_TRAINED.match(name) or (block is not None and int(block[1]) >= layers)
        p.requires_grad_(bool(trained))
