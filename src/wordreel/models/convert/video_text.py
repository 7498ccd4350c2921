"""Published checkpoints of models on CLIP's towers, both ways: `pytorch_model.bin.N`, a plain state dict.

Modules have the published names, so that a checkpoint is checked key by key against the module and copied.
TS2-Net's differ in a few places (`ts2net`), and published ones carry two parts that nothing uses.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wordreel.atomic import atomic_write
from wordreel.errors import WeightsError
from wordreel.models.checkpoint import save
from wordreel.models.clip.build import build_video_text
from wordreel.models.clip.config import Clip2VideoConfig, Clip4ClipConfig, TS2NetConfig, VideoTextConfig
from wordreel.models.clip.ts2net import stretched
from wordreel.models.clip.video_text import VideoTextModel
from wordreel.models.config import Mode
from wordreel.models.convert import ts2net
from wordreel.nets.checkpoint import check, unwrapped
from wordreel.nets.clip import read_clip4clip
from wordreel.nets.clip.clip2video_head import CENTRES, MATRIX, row_count
from wordreel.nets.clip.frame_head import BLOCKS, POSITIONS
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
    if isinstance(config, TS2NetConfig):
        arrays = _with_positions(ts2net.own_names(arrays), config.positions)
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
    try:
        return _inferred(name, arrays, mode, max_frames, max_words)
    except ValueError as error:  # a configuration that cannot be
        raise WeightsError(f"{name} cannot be converted: {error}") from None


def _inferred(name: str, arrays: Arrays, mode: Mode, max_frames: int, max_words: int) -> VideoTextConfig:
    towers, head = read_clip4clip.split(ts2net.own_names(arrays))
    patch = towers.pop(read_clip4clip.PATCH_3D, None)
    kind = read_clip4clip.head_name(head)
    layers = read_clip4clip.count_blocks(head, TIGHT_BLOCKS if kind == "tight" else BLOCKS)
    backbone = infer_config(name, to_huggingface(towers))
    max_words = min(max_words, backbone.text.length)
    if kind == "clip2video":
        return Clip2VideoConfig(
            backbone,
            "mlp" if MATRIX in head else "attention",
            layers,
            row_count(head, CENTRES),
            max_frames=max_frames,
            max_words=max_words,
            mode=mode,
        )
    if kind == "ts2net":
        return TS2NetConfig(
            backbone,
            layers,
            len(ts2net.shifted_blocks(arrays)),
            positions=max(row_count(head, POSITIONS), max_frames * (1 + TS2NetConfig.patches)),
            max_frames=max_frames,
            max_words=max_words,
            mode=mode,
        )
    return Clip4ClipConfig(
        backbone,
        kind,
        "2d" if patch is None else "3d",
        layers or Clip4ClipConfig.layers,
        max_frames=max_frames,
        max_words=max_words,
        mode=mode,
    )


@dataclass(frozen=True)
class Conversion:
    """What a published checkpoint was; `notes` say what is not as in the file."""

    kind: str
    parameters: int
    notes: tuple[str, ...]


def convert_video_text(
    path: Path,
    folder: Path,
    *,
    mode: Mode = "released",
    max_frames: int = 12,
    max_words: int = 32,
    name: str | None = None,
) -> Conversion:
    """Write a published checkpoint as a checkpoint folder, which training starts from.

    Args:
        path: The published file; nothing in it is run.
        folder: Where the checkpoint folder is written.
        mode: "released" computes as the released code does, "paper" as the paper says.
        max_frames: Frames of a video that the model is used with.
        max_words: Tokens of a caption, with both end tokens.
        name: What the model is called. None: its kind.
    """
    arrays = unwrapped(read_state_dict(path))
    config = infer_video_text(path.name, arrays, mode, max_frames, max_words)
    module = module_from(path.name, arrays, config)
    save(folder, module, name or config.kind, {"converted_from": path.name})
    return Conversion(config.kind, sum(p.numel() for p in module.parameters()), tuple(_notes(arrays, config)))


def _notes(arrays: Arrays, config: VideoTextConfig) -> Iterator[str]:
    if not isinstance(config, TS2NetConfig):
        return
    if unused := sorted({key.partition(".")[0] for key in ts2net.unused_parts(arrays)}):
        yield f"left out {' and '.join(unused)}, which the published program carries and does not use"
    rows = len(arrays[POSITIONS])
    if rows < config.positions:
        yield f"stretched the table of {rows} positions to {config.positions}, for {config.max_frames} frames"


def save_published(path: Path, module: VideoTextModel, unused: Arrays | None = None) -> None:
    """Write the state dict that the published code loads, as a whole or not at all.

    `unused` is a published TS2-Net's state, whose parts that nothing uses are written too.
    """
    state = OrderedDict((key, value.detach().cpu().float()) for key, value in module.state_dict().items())
    if isinstance(module.config, TS2NetConfig):
        state = OrderedDict(ts2net.published_names(state, module.config.shifted_blocks))
        for key, value in ts2net.unused_parts(unwrapped(unused or {})).items():
            state[key] = torch.from_numpy(np.array(value, np.float32))
    buffer = io.BytesIO()
    torch.save(state, buffer)
    atomic_write(path, buffer.getvalue())


def _with_positions(arrays: Arrays, rows: int) -> Arrays:
    """A longer table of positions where the configuration has more than the checkpoint."""
    table = arrays.get(POSITIONS)
    if table is None or table.ndim != 2 or len(table) >= rows:
        return arrays
    longer = stretched(torch.from_numpy(np.array(table, np.float32)), rows)
    return {**arrays, POSITIONS: longer.numpy()}
