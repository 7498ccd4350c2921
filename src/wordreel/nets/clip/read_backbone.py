"""Read a joint picture-text model from a local file or folder: its configuration and its named weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from wordreel.errors import NextStep, WeightsError
from wordreel.nets.clip.config import BackboneConfig
from wordreel.nets.clip.read_config import from_huggingface, read_json
from wordreel.nets.graph import Array
from wordreel.weights.lazy_state import open_safetensors
from wordreel.weights.torch_file import read_state_dict

MAX_PARTS = 64


def read_backbone(path: Path) -> tuple[BackboneConfig, Mapping[str, Array]]:
    """The configuration, and the weights by the names of `transformers`, read when they are used.

    `path` is a folder as the Hugging Face hub holds it. Nothing is executed, and nothing but the
    configuration and the weights is read. `build_towers` checks every key and shape.
    """
    path = path.expanduser()
    if not path.is_dir():
        raise WeightsError(f"there is no folder {path}", NextStep("give the folder of a downloaded model"))
    name = path.resolve().name
    if not (path / "config.json").is_file():
        raise WeightsError(f"{name} has no config.json", NextStep("download the whole model"))
    preprocessor = path / "preprocessor_config.json"
    config = from_huggingface(
        name, read_json(path / "config.json"), read_json(preprocessor) if preprocessor.is_file() else {}
    )
    state = _folder_state(path)
    return with_logits(config, state), state


def with_logits(config: BackboneConfig, state: Mapping[str, Array]) -> BackboneConfig:
    """The configuration with the learnt scale and bias of the logits."""
    scale, bias = (
        float(np.reshape(state[key], -1)[0]) if key in state else None
        for key in ("logit_scale", "logit_bias")
    )
    if scale is not None:
        config = replace(config, logit_scale=float(np.exp(min(scale, 20.0))))
    return config if bias is None else replace(config, logit_bias=bias)


def _folder_state(folder: Path) -> Mapping[str, Array]:
    if (single := folder / "model.safetensors").is_file():
        return open_safetensors(single)
    if (index := folder / "model.safetensors.index.json").is_file():
        return open_safetensors(*_parts(folder, index))
    if (pickled := folder / "pytorch_model.bin").is_file():
        return read_state_dict(pickled)
    raise WeightsError(
        f"{folder.name} has neither model.safetensors nor pytorch_model.bin",
        NextStep("download the whole model"),
    )


def _parts(folder: Path, index: Path) -> list[Path]:
    table = read_json(index).get("weight_map")
    names = sorted({str(name) for name in table.values()}) if isinstance(table, dict) else []
    if not 0 < len(names) <= MAX_PARTS or any(Path(name).name != name for name in names):
        raise WeightsError(f"{index.name} does not list the parts of the weights")
    for name in names:
        if not (folder / name).is_file():
            raise WeightsError(f"{folder.name} has no {name}", NextStep("download the whole model"))
    return [folder / name for name in names]
