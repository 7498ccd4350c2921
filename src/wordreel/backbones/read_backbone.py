"""Read a joint picture-text model from a local file or folder: its configuration and its named weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.infer_config import infer_config
from wordreel.backbones.layouts import to_huggingface
from wordreel.backbones.mobileclip import infer_mobileclip, is_mobileclip, to_towers
from wordreel.backbones.read_clip4clip import backbone_of, is_clip4clip
from wordreel.backbones.read_config import Json, from_huggingface, read_json
from wordreel.backbones.read_open_clip import from_open_clip
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.nets.checkpoint import WRAPPER, Array
from wordreel.runtime.torch_files.lazy_state import open_safetensors
from wordreel.runtime.torch_files.lazy_torch import open_state_dict
from wordreel.runtime.torch_files.torchscript import is_torchscript, read_torchscript

State = Mapping[str, Array]
MAX_PARTS = 64
HUGGINGFACE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
OPEN_CLIP = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
)
TRAINED, DESCRIPTION = "model.safetensors", "wordreel"  # of a training here, and the key of its header
BEST = "best"  # the folder of a training's best checkpoint
GENERIC = "pytorch_model"  # of files that their folder names
IMAGE_TOWERS = ("visual.", "vision_model.")  # before the names of an image tower's weights
WHOLE = NextStep("download the whole model")


def read_backbone(path: Path) -> tuple[BackboneConfig, State]:
    """The configuration, and the weights by the names that `build_towers` knows, read when they are used.

    `path` is a folder as the Hugging Face hub holds it, for `transformers` or open_clip, a checkpoint file
    of CLIP (OpenAI's TorchScript archives, state dicts), MobileCLIP, PE-Core or CLIP4Clip, or the folder
    of a CLIP4Clip trained here. Nothing is executed, and nothing but the configuration and the weights is
    read. `build_towers` checks every key and shape of the towers.
    """
    path = path.expanduser()
    if not (path.is_dir() or path.is_file()):  # a pipe or device would be read without an end
        raise WeightsError(f"there is no file or folder {path}", NextStep("give a downloaded model"))
    if path.is_dir():
        config, state = _read_folder(path)
    elif path.name in HUGGINGFACE and (path.parent / "config.json").is_file():
        config, state = _read_huggingface(path.parent, path)
    elif (described := path.parent / "open_clip_config.json").is_file():
        config, state = _read_open_clip(path.parent, described, path)
    else:
        config, state = _read_file(path)
    return with_logits(config, state), state


def names_backbone(path: Path) -> bool:
    """Whether a checkpoint file names the weights of a joint picture-text model, good ones or not."""
    try:
        names = list(_state(path))
    except WeightsError:
        return False
    towers = any(name.removeprefix(WRAPPER).startswith(IMAGE_TOWERS) for name in names)
    return towers or is_clip4clip(names) or is_mobileclip(names)


def with_logits(config: BackboneConfig, state: State) -> BackboneConfig:
    """The configuration with the learnt scale and bias of the logits."""
    scale, bias = (
        float(np.reshape(state[key], -1)[0]) if key in state and np.size(state[key]) else None
        for key in ("logit_scale", "logit_bias")
    )
    if scale is not None:
        config = replace(config, logit_scale=float(np.exp(min(scale, 20.0))))
    return config if bias is None else replace(config, logit_bias=bias)


def _read_folder(folder: Path) -> tuple[BackboneConfig, State]:
    name = folder.resolve().name
    if training := find_training(folder):
        state = open_safetensors(training / TRAINED)
        return backbone_of(local_name(training.resolve()), state, _training_config(training))
    described = folder / "open_clip_config.json"
    ours = (folder / "config.json").is_file() and (
        not described.is_file() or "model_type" in read_json(folder / "config.json")
    )
    if ours and (weights := _first(folder, HUGGINGFACE)):
        return _read_huggingface(folder, weights)
    if described.is_file():
        if weights := _first(folder, OPEN_CLIP):
            return _read_open_clip(folder, described, weights)
        raise WeightsError(f"{name} has none of {', '.join(OPEN_CLIP)}", WHOLE)
    if len(checkpoints := sorted(folder.glob("*.pt"))) == 1:
        return _read_file(checkpoints[0])
    missing = f"{HUGGINGFACE[0]} nor {HUGGINGFACE[-1]}" if (folder / "config.json").is_file() else ""
    raise WeightsError(f"{name} has neither {missing or 'config.json nor open_clip_config.json'}", WHOLE)


def find_training(folder: Path) -> Path | None:
    """The checkpoint folder of a training here that a folder is, or holds as its best; None if neither."""
    return next((place for place in (folder, folder / BEST) if "backbone" in _training_config(place)), None)


def _training_config(folder: Path) -> Mapping[str, Any]:
    """The configuration that the weight file of a training describes; empty if it is another file."""
    from safetensors import SafetensorError, safe_open

    if not (folder / TRAINED).is_file():
        return {}
    try:
        with safe_open(str(folder / TRAINED), "numpy") as file:
            config = json.loads((file.metadata() or {})[DESCRIPTION])["config"]
    except (SafetensorError, OSError, ValueError, KeyError, TypeError):
        return {}
    return config if isinstance(config, dict) else {}


def local_name(path: Path) -> str:
    """What a model in a local file or folder is called: after its folder where its own name says nothing.

    >>> local_name(Path("/ckpt_msvd/pytorch_model.bin.4")), local_name(Path("/runs/mine/best"))
    ('ckpt_msvd', 'mine')
    """
    if (path.name.startswith(GENERIC) or path.name == BEST) and path.parent.name:
        return path.parent.name
    return path.name if path.is_dir() else path.stem


def _read_huggingface(folder: Path, weights: Path) -> tuple[BackboneConfig, State]:
    config = from_huggingface(folder.resolve().name, read_json(folder / "config.json"), _preprocessor(folder))
    return config, _state(weights)


def _preprocessor(folder: Path) -> Json:
    """How pictures are prepared, from either of the files that `transformers` writes; empty if none."""
    if (own := folder / "preprocessor_config.json").is_file():
        return read_json(own)
    if (shared := folder / "processor_config.json").is_file():
        inner = read_json(shared).get("image_processor")
        return inner if isinstance(inner, dict) else {}
    return {}


def _read_open_clip(folder: Path, described: Path, weights: Path) -> tuple[BackboneConfig, State]:
    content, raw = read_json(described), _state(weights)
    state = to_towers(raw) if is_mobileclip(raw) else to_huggingface(raw)
    return from_open_clip(folder.resolve().name, content, state), state


def _read_file(path: Path) -> tuple[BackboneConfig, State]:
    raw = _state(path)
    if is_clip4clip(raw):
        return backbone_of(local_name(path.resolve()), raw)
    if is_mobileclip(raw):
        state = to_towers(raw)
        return infer_mobileclip(path.stem, state), state
    wrapped = all(key.startswith(WRAPPER) for key in raw)
    state = to_huggingface(raw)
    if wrapped or path.name in OPEN_CLIP or any(key.startswith("visual.trunk.") for key in raw):
        raise WeightsError(
            f"{path.name} is an open_clip checkpoint, which does not say how its model computes",
            NextStep("put the model's open_clip_config.json beside it"),
        )
    return infer_config(path.stem, state), state


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _state(path: Path) -> State:
    if path.name.endswith(".index.json"):
        return open_safetensors(*_parts(path))
    if path.suffix == ".safetensors":
        return open_safetensors(path)
    return read_torchscript(path) if is_torchscript(path) else open_state_dict(path)


def _parts(index: Path) -> list[Path]:
    folder, table = index.parent, read_json(index).get("weight_map")
    names = sorted({str(name) for name in table.values()}) if isinstance(table, dict) else []
    if not 0 < len(names) <= MAX_PARTS or any(Path(name).name != name for name in names):
        raise WeightsError(f"{index.name} does not list the parts of the weights")
    for name in names:
        if not (folder / name).is_file():
            raise WeightsError(f"{folder.name} has no {name}", WHOLE)
    return [folder / name for name in names]
