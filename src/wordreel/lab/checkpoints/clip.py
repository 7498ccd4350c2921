"""Read the towers of a published CLIP: a folder for `transformers`, or a state dict by OpenAI's names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import import_module
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wordreel.backbones.config import ImageTransform
from wordreel.backbones.layout import files_in, read_json
from wordreel.errors import NextStep, WeightsError
from wordreel.lab.models.clip.config import ClipConfig, TextTowerConfig, VisionTowerConfig
from wordreel.lab.models.clip.video_text import VideoTextModel
from wordreel.runtime.torch_file import is_torchscript, read_state_dict, unwrapped

Arrays = Mapping[str, NDArray[Any]]
SETTINGS = {"num_attention_heads": "heads", "hidden_act": "activation", "layer_norm_eps": "epsilon"}
"""What shapes do not tell: names of `transformers`, and ours."""
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
HEAD_WIDTH = 64  # numbers of an attention head of every published CLIP
TEXT_EMBEDDINGS, VISION_EMBEDDINGS = "text_model.embeddings.", "vision_model.embeddings."
RENAMED = (
    (r"vision_model\.embeddings\.class_embedding", "visual.class_embedding"),
    (r"vision_model\.embeddings\.patch_embedding", "visual.conv1"),
    (r"vision_model\.embeddings\.position_embedding\.weight", "visual.positional_embedding"),
    (r"vision_model\.pre_layrnorm", "visual.ln_pre"),
    (r"vision_model\.post_layernorm", "visual.ln_post"),
    (r"vision_model\.encoder\.layers", "visual.transformer.resblocks"),
    (r"text_model\.embeddings\.token_embedding", "token_embedding"),
    (r"text_model\.embeddings\.position_embedding\.weight", "positional_embedding"),
    (r"text_model\.final_layer_norm", "ln_final"),
    (r"text_model\.encoder\.layers", "transformer.resblocks"),
    (r"\.layer_norm(\d)\.", r".ln_\1."),
    (r"\.mlp\.fc1\.", ".mlp.c_fc."),
    (r"\.mlp\.fc2\.", ".mlp.c_proj."),
    (r"\.self_attn\.out_proj\.", ".attn.out_proj."),
)
"""The names of `transformers`, and OpenAI's."""


def read_clip(path: Path) -> tuple[ClipConfig, dict[str, NDArray[Any]]]:
    """Return the sizes of a CLIP and its weights by OpenAI's names.

    Args:
        path: A folder in the layout of `transformers`, or with one checkpoint file; or such a file: a state
            dict, or OpenAI's own archive, which open_clip reads.

    Raises:
        WeightsError: It is no CLIP with a vision transformer, or damaged.
    """
    path = path.expanduser()
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():  # a pipe or device would be read without an end
        raise WeightsError(f"there is no file or folder {path}", NextStep("give a downloaded model"))
    state = openai_archive(path) if is_torchscript(path) else unwrapped(read_state_dict(path))
    return infer_clip(path.stem, state), state


def init_from_clip(model: VideoTextModel, path: Path) -> None:
    """Load the towers of a CLIP, and initialise the head from its text tower.

    Raises:
        WeightsError: The checkpoint is damaged, or of another architecture; the message names the difference.
    """
    config, arrays = read_clip(path)
    wanted = model.config.backbone
    for tower in ("vision", "text"):
        ours, theirs = asdict(getattr(wanted, tower)), asdict(getattr(config, tower))
        for name, value in ours.items():
            if theirs[name] != value:
                raise WeightsError(
                    f"{path} is not a {wanted.name}: its {tower}.{name} is {theirs[name]!r}, not {value!r}"
                )
    model.load_clip({key: torch.from_numpy(np.array(value, np.float32)) for key, value in arrays.items()})


def infer_clip(name: str, state: Arrays) -> ClipConfig:
    """Return the sizes of a CLIP from the shapes of its weights by OpenAI's names."""
    width, _, patch, _ = _shape(name, state, "visual.conv1.weight", 4)
    tokens = _shape(name, state, "visual.positional_embedding", 2)[0]
    side = isqrt(max(0, tokens - 1))
    if side == 0 or side * side + 1 != tokens:
        raise WeightsError(f"{name} has positions for {tokens} tokens, which do not form a square")
    vocabulary, text_width = _shape(name, state, "token_embedding.weight", 2)
    vision = VisionTowerConfig(
        side * patch,
        patch,
        width,
        _depth(state, "visual.transformer"),
        max(1, width // HEAD_WIDTH),
        _shape(name, state, "visual.transformer.resblocks.0.mlp.c_fc.weight", 2)[0],
    )
    text = TextTowerConfig(
        vocabulary,
        _shape(name, state, "positional_embedding", 2)[0],
        text_width,
        _depth(state, "transformer"),
        max(1, text_width // HEAD_WIDTH),
        _shape(name, state, "transformer.resblocks.0.mlp.c_fc.weight", 2)[0],
    )
    dim = _shape(name, state, "visual.proj", 2)[1]
    return ClipConfig(name, dim, vision, text, ImageTransform(size=vision.size))


def openai_archive(path: Path) -> dict[str, NDArray[Any]]:
    """Return the weights of one of OpenAI's archives. Loading one runs code, which open_clip does."""
    try:
        load_openai_model = import_module("open_clip").load_openai_model
    except ImportError:
        raise WeightsError(
            f"{path.name} is an archive of TorchScript, which open_clip reads",
            NextStep("run: pip install open-clip-torch, or take the same CLIP as a Hugging Face folder"),
        ) from None
    model = load_openai_model(str(path), precision="fp32", device="cpu")
    return {key: value.numpy() for key, value in model.state_dict().items()}


def from_transformers(state: Arrays) -> dict[str, NDArray[Any]]:
    """Return the same weights by OpenAI's names: blocks have one matrix for query, key and value."""
    renamed: dict[str, NDArray[Any]] = {}
    for key, value in state.items():
        if key.endswith("position_ids") or re.search(r"\.self_attn\.[kv]_proj\.", key):
            continue
        if match := re.search(r"\.self_attn\.q_proj\.(weight|bias)$", key):
            parts = [state[key.replace(".q_proj.", f".{part}_proj.")] for part in "qkv"]
            value = np.concatenate(parts)
            key = f"{key[: match.start()]}.attn.in_proj_{match[1]}"
        elif key in ("visual_projection.weight", "text_projection.weight"):
            key, value = key.replace("visual_projection.weight", "visual.proj"), np.transpose(value)
            key = key.removesuffix(".weight")
        for pattern, name in RENAMED:
            key = re.sub(pattern, name, key)
        renamed[key] = value
    return renamed


def _read_folder(folder: Path) -> tuple[ClipConfig, dict[str, NDArray[Any]]]:
    name = folder.resolve().name
    weights = next((folder / file for file in WEIGHTS if (folder / file).is_file()), None)
    if not (folder / "config.json").is_file() or weights is None:
        checkpoints = [folder / file for file in files_in(folder) if file.endswith(".pt") and "/" not in file]
        if len(checkpoints) == 1:
            return read_clip(checkpoints[0])
        raise WeightsError(
            f"{name} has neither a config.json with {' or '.join(WEIGHTS)} nor one .pt file",
            NextStep("download the whole model"),
        )
    values = read_json(folder / "config.json")
    if values.get("model_type") != "clip":
        raise WeightsError(
            f"{name} is a {values.get('model_type')!r}; models that read frames need a CLIP with a "
            "vision transformer"
        )
    try:
        state = from_transformers(read_state_dict(weights))
    except KeyError as error:
        raise WeightsError(f"{name} lacks the weights {error}") from None
    return _with_settings(infer_clip(name, state), values, folder), state


def _with_settings(config: ClipConfig, values: Mapping[str, Any], folder: Path) -> ClipConfig:
    """Return the configuration with what shapes do not tell."""
    towers: dict[str, Any] = {}
    for tower in ("vision", "text"):
        given = values.get(f"{tower}_config") or {}
        known = {ours: given[theirs] for theirs, ours in SETTINGS.items() if theirs in given}
        if known.get("activation") == "gelu_pytorch_tanh":
            known["activation"] = "gelu_tanh"
        towers[tower] = replace(getattr(config, tower), **known)
    transform = config.transform
    preprocessor = folder / "preprocessor_config.json"
    if preprocessor.is_file():
        given = json.loads(preprocessor.read_text(encoding="utf-8"))
        mean, std = given.get("image_mean", transform.mean), given.get("image_std", transform.std)
        transform = ImageTransform(config.vision.size, tuple(mean), tuple(std))
    return replace(config, **towers, transform=transform)


def _shape(name: str, state: Arrays, key: str, dims: int) -> tuple[int, ...]:
    if key not in state or state[key].ndim != dims:
        raise WeightsError(
            f"{name} is no CLIP with a vision transformer: it has no {key} of the usual shape",
            NextStep("use a CLIP such as ViT-B/32"),
        )
    return state[key].shape


def _depth(state: Arrays, at: str) -> int:
    start = f"{at}.resblocks."
    return len({key.removeprefix(start).split(".")[0] for key in state if key.startswith(start)})
