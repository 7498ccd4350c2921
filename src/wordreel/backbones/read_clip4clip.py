"""Read a CLIP4Clip or CLIP2Video as a backbone: its fine-tuned towers, and the head that search runs.

A published checkpoint (`pytorch_model.bin.N`) holds the towers under `clip.` in OpenAI's layout, and the
head's weights beside them. A folder of a training here holds the same names, and its configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from wordreel.backbones.clip2video_head import CENTRES, row_count
from wordreel.backbones.config import BackboneConfig, FrameHeadConfig
from wordreel.backbones.frame_head import BLOCKS, HEAD, LSTM, FrameHead
from wordreel.backbones.infer_config import infer_config
from wordreel.backbones.layouts import to_huggingface
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.nets.checkpoint import WRAPPER, Array, unwrapped
from wordreel.runtime.torch_files.lazy_state import LazyState

State = Mapping[str, Array]
HeadName = Literal["mean", "lstm", "transformer", "tight", "clip2video", "ts2net"]
SELECTION = "visual_token_selector"  # of TS2-Net
TOWERS = "clip."  # before the names of the towers' weights
PATCH_3D = "visual.conv2.weight"
FRAMES = 12  # that published models of short videos see
VATEX_CENTRES = 7
USABLE = NextStep("use a CLIP2Video, or a CLIP4Clip with the mean, LSTM or transformer head and 2-D patches")
REFUSED: Mapping[str, str] = {
    "tight": "has CLIP4Clip's tight head, which reads every query together with every video: there is no "
    "embedding of a video that could be stored",
    "ts2net": "is a TS2-Net, which weighs the frames of a video by the query and shifts tokens between them: "
    "there is no embedding of a frame or of a video that could be stored",
}


def is_clip4clip(names: Iterable[str]) -> bool:
    """Whether names are those of a model on CLIP's towers: CLIP4Clip, or one that builds on it."""
    return any(name.removeprefix(WRAPPER).startswith(f"{TOWERS}visual.") for name in names)


def split(state: State) -> tuple[dict[str, Array], dict[str, Array]]:
    """The towers' weights by OpenAI's names, and the head's by the published ones."""
    whole = unwrapped(state)
    towers = {key.removeprefix(TOWERS): value for key, value in whole.items() if key.startswith(TOWERS)}
    return towers, {key: value for key, value in whole.items() if not key.startswith(TOWERS)}


def head_name(head: Iterable[str]) -> HeadName:
    """Which head weights are of."""
    starts = {key.partition(".")[0] for key in head}
    if CENTRES in starts:
        return "clip2video"
    if SELECTION in starts:
        return "ts2net"
    if "cross" in starts:
        return "tight"
    if LSTM in starts:
        return "lstm"
    return "transformer" if BLOCKS.partition(".")[0] in starts else "mean"


def count_blocks(names: Iterable[str], at: str = BLOCKS) -> int:
    return len({name.removeprefix(at).split(".")[1] for name in names if name.startswith(f"{at}.")})


def frame_rate(kind: HeadName, centres: int) -> float:
    """Return how many frames a second a published model sees.

    CLIP2Video divides frames extracted at 5 a second by its `feature_framerate`: 2 on MSR-VTT, 1 on VATEX,
    whose checkpoint has 7 centres, and on MSVD, whose checkpoint looks like MSR-VTT's.

    >>> frame_rate("clip2video", 5), frame_rate("clip2video", 7), frame_rate("mean", 0)
    (2.5, 5.0, 1.0)
    """
    if kind != "clip2video":
        return 1.0
    return 5.0 if centres == VATEX_CENTRES else 2.5


def backbone_of(
    name: str, state: State, config: Mapping[str, Any] | None = None, frames: int = FRAMES
) -> tuple[BackboneConfig, State]:
    """The backbone in a checkpoint: its weights by the names of `transformers`, the head's after `head.`.

    Args:
        name: What the backbone is called.
        state: The checkpoint's arrays.
        config: The configuration of a training here; None infers it from the arrays.
        frames: How many frames of a video a published model sees.

    Raises:
        WeightsError: The model needs more than frame embeddings, or is another one.
    """
    towers, head = split(state)
    kind = head_name(head)
    if kind == "tight" or kind == "ts2net":
        raise WeightsError(f"{name} {REFUSED[kind]}", USABLE)
    if PATCH_3D in towers:
        raise WeightsError(
            f"{name} has CLIP4Clip's 3-D patches, which read neighbouring frames together: there is no "
            "embedding of a single frame that could be stored",
            USABLE,
        )
    converted = to_huggingface(towers)
    if config is None:
        backbone = infer_config(name, converted)
    else:
        backbone, frames = _described(name, config)
    layers = count_blocks(head) or FrameHeadConfig.layers
    share = FrameHeadConfig.global_weight if config is None else float(config.get("global_weight", 0.5))
    centres = row_count(head, CENTRES)
    rate = frame_rate(kind, centres)
    if config is not None:
        rate = float(config.get("frame_rate", rate))
    described = FrameHeadConfig(kind, frames, layers, backbone.text.heads, share, centres, rate)
    FrameHead(described, backbone.dim, head, name)  # raises if weights are missing, or are another model's
    readers = {key: partial(converted.__getitem__, key) for key in converted}
    readers |= {f"{HEAD}{key}": partial(head.__getitem__, key) for key in head}
    return replace(backbone, name=name, head=described), LazyState(readers)


def _described(name: str, config: Mapping[str, Any]) -> tuple[BackboneConfig, int]:
    """The backbone and the number of frames in the configuration of a training."""
    try:
        return BackboneConfig.from_json(config["backbone"]), int(config["max_frames"])
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"the description of {name} cannot be read: {error!r}") from None
