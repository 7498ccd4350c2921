"""Published checkpoints of models on CLIP's towers, both ways: `pytorch_model.bin.N`, a plain state dict.

Modules have the published names, so that a checkpoint is checked key by key against the module and copied.
TS2-Net's published program wraps the attention of the blocks that shift, and carries two parts that no
computation uses: an encoder of video prompts and a selection of text tokens.
"""

from __future__ import annotations

import io
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsError
from wordreel.lab.checkpoints.clip import infer_clip
from wordreel.lab.models.build import build
from wordreel.lab.models.checkpoint import save
from wordreel.lab.models.clip.config import (
    Clip2VideoConfig,
    Clip4ClipConfig,
    Clip4ClipMode,
    TS2NetConfig,
    VideoTextConfig,
)
from wordreel.lab.models.clip.ts2net import stretched
from wordreel.lab.models.clip.video_text import VideoTextModel
from wordreel.runtime.torch_file import check, read_state_dict, unwrapped
from wordreel.util.atomic import atomic_write

Arrays = Mapping[str, NDArray[Any]]
BLOCKS, TIGHT_BLOCKS = "transformerClip.resblocks", "cross.transformer.resblocks"
TOWERS, PATCH_3D = "clip.", "visual.conv2.weight"
POSITIONS, CENTRES, MATRIX = "frame_position_embeddings.weight", "emb_center", "frame2t_projection"
VATEX_CENTRES = 7
HeadName = Literal["mean", "lstm", "transformer", "tight", "clip2video", "ts2net"]
UNUSED = ("visual_prompt_encoder.", "text_token_selector.")
WRAPPED = re.compile(r"^(clip\.visual\.transformer\.resblocks\.(\d+)\.attn\.)net\.")
ATTENTION = re.compile(r"^(clip\.visual\.transformer\.resblocks\.(\d+)\.attn\.)")
Value = TypeVar("Value")
MAX_FRAMES, MAX_WORDS = 12, 32  # of models published for short videos


def load_published(path: Path, config: VideoTextConfig | None = None) -> VideoTextModel:
    """Return a module with the weights of a published checkpoint in float32, in evaluation mode.

    Args:
        path: The checkpoint; it is read without running anything in it.
        config: What the checkpoint is of; None infers it, with the released code's behaviour.

    Raises:
        WeightsError: The checkpoint is not of this configuration; the message names the key.
    """
    return module_from(path.name, read_state_dict(path), config)


def module_from(name: str, arrays: Arrays, config: VideoTextConfig | None = None) -> VideoTextModel:
    """Build the model of `load_published` from arrays that are already read."""
    arrays = unwrapped(arrays)
    config = config or infer_video_text(name, arrays)
    if isinstance(config, TS2NetConfig):
        arrays = _with_positions(own_names(arrays), config.positions)
    with torch.device("meta"):
        module = build(config)
    shapes = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    check(arrays, shapes, {}, given=name, expected=f"a {config.kind} checkpoint of its configuration")
    state = {key: torch.from_numpy(np.array(value, np.float32)) for key, value in arrays.items()}
    module.load_state_dict(state, assign=True)
    return module.eval()


def infer_video_text(
    name: str,
    arrays: Arrays,
    mode: Clip4ClipMode = "released",
    max_frames: int | None = None,
    max_words: int | None = None,
    frame_rate: float | None = None,
) -> VideoTextConfig:
    """Return the configuration of a checkpoint, from its names and shapes.

    They do not tell how many frames and words the model was trained with: 12 and 32 on MSR-VTT, MSVD and
    LSMDC, which None assumes, 64 and 64 on ActivityNet and DiDeMo. For `frame_rate` None see
    `published_frame_rate`.
    """
    if not any(key.startswith(f"{TOWERS}visual.") for key in arrays):
        if any(key.startswith(("visual.", "vision_model.")) for key in arrays):
            raise WeightsError(
                f"{name} is CLIP itself, without a head over frames",
                NextStep("search with it, or start a training from it", f"use {name}"),
            )
        raise WeightsError(f"{name} is not a model on CLIP's towers: it has no weights under clip.visual")
    try:
        config = _inferred(name, arrays, mode, max_frames, max_words)
        return config if frame_rate is None else replace(config, frame_rate=frame_rate)
    except ValueError as error:  # a configuration that cannot be
        raise WeightsError(f"{name} cannot be converted: {error}") from None


def _inferred(
    name: str, arrays: Arrays, mode: Clip4ClipMode, max_frames: int | None, max_words: int | None
) -> VideoTextConfig:
    own = own_names(arrays)
    towers = {key.removeprefix(TOWERS): value for key, value in own.items() if key.startswith(TOWERS)}
    head = {key: value for key, value in own.items() if not key.startswith(TOWERS)}
    kind = _head_name(head)
    layers = _count_blocks(head, TIGHT_BLOCKS if kind == "tight" else BLOCKS)
    backbone = infer_clip(name, towers)
    frames = MAX_FRAMES if max_frames is None else max_frames
    words = min(MAX_WORDS, backbone.text.length) if max_words is None else max_words
    limits: dict[str, Any] = {"max_frames": frames, "max_words": words, "mode": mode}
    if kind in ("clip2video", "ts2net") and mode == "released-2021":
        raise ValueError("the mode released-2021 is CLIP4Clip's; use released or paper")
    if kind == "clip2video":
        centres = _row_count(head, CENTRES)
        difference: Literal["mlp", "attention"] = "mlp" if MATRIX in head else "attention"
        rate = published_frame_rate(kind, centres)
        return Clip2VideoConfig(backbone, difference, layers, centres, frame_rate=rate, **limits)
    if kind == "ts2net":
        positions = max(_row_count(head, POSITIONS), frames * (1 + TS2NetConfig.patches))
        return TS2NetConfig(backbone, layers, len(shifted_blocks(arrays)), positions=positions, **limits)
    patch: Literal["2d", "3d"] = "3d" if PATCH_3D in towers else "2d"
    return Clip4ClipConfig(backbone, kind, patch, layers or Clip4ClipConfig.layers, **limits)


def published_frame_rate(kind: HeadName, centres: int) -> float:
    """Return how many frames a second a published model sees.

    CLIP2Video divides frames extracted at 5 a second by its `feature_framerate`: 2 on MSR-VTT, 1 on VATEX,
    whose checkpoint has 7 centres, and on MSVD, whose checkpoint looks like MSR-VTT's.

    >>> published_frame_rate("clip2video", 5), published_frame_rate("clip2video", 7)
    (2.5, 5.0)
    """
    if kind != "clip2video":
        return 1.0
    return 5.0 if centres == VATEX_CENTRES else 2.5


def _head_name(head: Iterable[str]) -> HeadName:
    """Which model's head has weights of these names."""
    starts = {key.partition(".")[0] for key in head}
    marks: dict[str, HeadName] = {
        CENTRES: "clip2video", "visual_token_selector": "ts2net", "cross": "tight", "lstm_visual": "lstm",
        "transformerClip": "transformer",
    }  # fmt: skip
    return next((kind for mark, kind in marks.items() if mark in starts), "mean")


def _count_blocks(names: Iterable[str], at: str) -> int:
    return len({name.removeprefix(at).split(".")[1] for name in names if name.startswith(f"{at}.")})


def _row_count(arrays: Arrays, name: str) -> int:
    """Return the rows of a table; 0 where there is none."""
    shape = arrays[name].shape if name in arrays else ()
    return shape[0] if shape else 0


CONVERTED = ("kind", "head", "patch", "mode", "max_frames", "max_words", "frame_rate")


@dataclass(frozen=True)
class Conversion:
    """What a published checkpoint was and how it is used; `notes` say what was assumed and what was changed.

    `head` and `patch` are CLIP4Clip's, "" for other models.
    """

    kind: str
    parameters: int
    head: str
    patch: str
    mode: str
    max_frames: int
    max_words: int
    frame_rate: float
    notes: tuple[str, ...]


def convert_video_text(
    path: Path,
    folder: Path,
    *,
    mode: Clip4ClipMode = "released",
    max_frames: int | None = None,
    max_words: int | None = None,
    frame_rate: float | None = None,
    name: str | None = None,
) -> Conversion:
    """Write a published checkpoint as a checkpoint folder, which training starts from.

    Args:
        path: The published file; nothing in it is run.
        folder: Where the checkpoint folder is written.
        mode: "released" computes as the published repository does today, "paper" as the paper says,
            "released-2021" as CLIP4Clip's repository did until July 2021.
        max_frames: Frames of a video that the model is used with. None: 12.
        max_words: Tokens of a caption, with both end tokens. None: 32.
        frame_rate: Frames a second. None: 1; of CLIP2Video 2.5, or 5 with VATEX's 7 centres.
        name: What the model is called. None: its kind.
    """
    arrays = unwrapped(read_state_dict(path))
    config = infer_video_text(path.name, arrays, mode, max_frames, max_words, frame_rate)
    module = module_from(path.name, arrays, config)
    save(folder, module, name or config.kind, {"converted_from": path.name})
    assumed = {
        f"{config.max_frames} frames (--frames)": max_frames,
        f"{config.max_words} words (--words)": max_words,
        f"a frame rate of {config.frame_rate:g} a second (--frame-rate)": frame_rate,
    }
    notes = [f"assumed {each}" for each, given in assumed.items() if given is None]
    parameters = sum(p.numel() for p in module.parameters())
    facts: dict[str, Any] = {name: getattr(config, name, "") for name in CONVERTED}
    return Conversion(**facts, parameters=parameters, notes=(*notes, *_notes(arrays, config)))


def _notes(arrays: Arrays, config: VideoTextConfig) -> Iterator[str]:
    yield from (f"mode {config.mode}: {effect}" for effect in batch_effects(config))
    if not isinstance(config, TS2NetConfig):
        return
    if unused := sorted({key.partition(".")[0] for key in unused_parts(arrays)}):
        yield f"left out {' and '.join(unused)}, which the published program carries and does not use"
    rows = len(arrays[POSITIONS])
    if rows < config.positions:
        yield f"stretched the table of {rows} positions to {config.positions}, for {config.max_frames} frames"


def batch_effects(config: VideoTextConfig) -> Iterator[str]:
    """Say how similarities depend on more than caption and video.

    >>> list(batch_effects(Clip4ClipConfig(head="transformer", mode="released-2021")))
    ['the embedding of a video depends on the other videos of its batch']
    """
    if isinstance(config, TS2NetConfig):
        if config.tiled_mask:
            yield "the embedding of a video depends on the longest video of its batch"
        if config.noisy_inference:
            yield "similarities change from run to run"
    elif isinstance(config, Clip2VideoConfig):
        if config.mode == "released":
            yield "the embedding of a video depends on the other videos of its batch"
    elif config.mode == "released-2021" and config.head in ("transformer", "tight"):
        yield "the embedding of a video depends on the other videos of its batch"


def save_published(path: Path, module: VideoTextModel, unused: Arrays | None = None) -> None:
    """Write the state dict that the published code loads, as a whole or not at all.

    `unused` is a published TS2-Net's state, whose parts that nothing uses are written too.
    """
    state = OrderedDict((key, value.detach().cpu().float()) for key, value in module.state_dict().items())
    if isinstance(module.config, TS2NetConfig):
        state = OrderedDict(published_names(state, module.config.shifted_blocks))
        for key, value in unused_parts(unwrapped(unused or {})).items():
            state[key] = torch.from_numpy(np.array(value, np.float32))
    buffer = io.BytesIO()
    torch.save(state, buffer)
    atomic_write(path, buffer.getvalue())


def _with_positions(arrays: Arrays, rows: int) -> Arrays:
    """Return a longer table of positions where the configuration has more than the checkpoint."""
    table = arrays.get(POSITIONS)
    if table is None or table.ndim != 2 or len(table) >= rows:
        return arrays
    longer = stretched(torch.from_numpy(np.array(table, np.float32)), rows)
    return {**arrays, POSITIONS: longer.numpy()}


def own_names(state: Mapping[str, Value]) -> dict[str, Value]:
    """Rename published weights to ours; the unused parts are left out.

    >>> list(own_names({"clip.visual.transformer.resblocks.11.attn.net.in_proj_bias": 0}))
    ['clip.visual.transformer.resblocks.11.attn.in_proj_bias']
    """
    return {WRAPPED.sub(r"\1", key): value for key, value in state.items() if not key.startswith(UNUSED)}


def unused_parts(state: Mapping[str, Value]) -> dict[str, Value]:
    """Return what the published program carries without using it."""
    return {key: value for key, value in state.items() if key.startswith(UNUSED)}


def shifted_blocks(names: Iterable[str]) -> set[int]:
    """Return the numbers of the image blocks whose attention is wrapped."""
    return {int(match[2]) for match in map(WRAPPED.match, names) if match}


def published_names(state: Mapping[str, Value], shifted: Iterable[int]) -> dict[str, Value]:
    """Map our names to the published ones; `shifted` are the numbers of the blocks that shift."""
    blocks = set(shifted)
    return {_published(key, blocks): value for key, value in state.items()}


def _published(key: str, blocks: set[int]) -> str:
    match = ATTENTION.match(key)
    return f"{match[1]}net.{key[match.end() :]}" if match and int(match[2]) in blocks else key
