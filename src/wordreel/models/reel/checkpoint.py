"""The default model's weights for the NumPy runtime: from a training's folder, or from the exported file.

The exported file is one safetensors file, matrices as bytes with a scale per row (`runtime/quantise.py`), the
rest as float16. Parts: `tower.…` (both sides), `encoder.…` (the layers of the sentence encoder that were
trained further), and `scale.…` (mean and deviation of each expert's rows). The header says what it was
trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.lab.models.config import MINILM, ReelConfig, from_json, to_json
from wordreel.lab.models.registry import reel
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.runtime.quantise import dequantise, quantise
from wordreel.types import Float32
from wordreel.util.atomic import atomic_write
from wordreel.util.checksum import file_sha256

FORMAT = 1
BYTES, SCALES = "/bytes", "/scales"
KEY = "reel"  # of the exported file's header
TRAINED = "wordreel"  # of the header of a training's model (models/checkpoint.py)
TUNED = "tuned"  # of the card of a model that was tuned: what it was tuned with
SHIPPED = Path(__file__).parent / "reel.safetensors"
_Stored = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]  # an array, and its scales if it is bytes
TEXT_NETWORK, TEXT_HEAD = "caption.words.", "text_head."  # of the module's names


@dataclass(frozen=True, eq=False)
class ReelCheckpoint:
    """Arrays by part, the card (data, settings, figures), and the sizes."""

    tower: Mapping[str, Float32]
    encoder: Mapping[str, Float32]
    scale: Mapping[str, Float32]
    card: dict[str, Any]
    digest: str = ""

    @property
    def config(self) -> ReelConfig:
        """The sizes: the card's, or those of the model that ships."""
        if "config" not in self.card:
            return reel()
        config = from_json(self.card["config"])
        if not isinstance(config, ReelConfig):
            raise WeightsCorrupt(f"this is a {config.kind} model, not one of the default model's kind")
        return config


def export(path: Path, checkpoint: ReelCheckpoint) -> None:
    """Write the small file, as a whole or not at all."""
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, np.ndarray[Any, Any]] = {}
    parts = {"tower": checkpoint.tower, "encoder": checkpoint.encoder, "scale": checkpoint.scale}
    for part, held in parts.items():
        for name, array in held.items():
            if is_quantised(array):
                small, scales = quantise(array)
                arrays[f"{part}.{name}{BYTES}"], arrays[f"{part}.{name}{SCALES}"] = small, scales
            else:
                arrays[f"{part}.{name}"] = array.astype(np.float16)
    about = {"format": FORMAT, **checkpoint.card}
    atomic_write(path, to_bytes(arrays, metadata={KEY: json.dumps(about, sort_keys=True)}))


def load(path: Path = SHIPPED, digest: str | None = None) -> ReelCheckpoint:
    """Read an exported file, or the weights of a training's folder, as float32; `digest` is its sha256."""
    if not path.exists():
        raise WeightsMissing(f"there is no model at {path}", NextStep("train one", "train default"))
    try:
        header, arrays = map_safetensors(path)
        about = json.loads(header[KEY] if KEY in header else header[TRAINED])
        if KEY in header:
            checkpoint = _exported(path, arrays, about)
        else:  # of a training, which may go on and change them
            checkpoint = _trained({name: array.copy() for name, array in arrays.items()}, about)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise WeightsCorrupt(
            f"{path} is not a model of this kind ({error})", NextStep("install wordreel again")
        ) from None
    return replace(checkpoint, digest=digest or file_sha256(path))


def _exported(path: Path, arrays: Mapping[str, Any], card: dict[str, Any]) -> ReelCheckpoint:
    if card.get("format") != FORMAT:
        raise WeightsCorrupt(f"{path} has format {card.get('format')}, this program reads {FORMAT}")
    parts: dict[str, dict[str, _Stored]] = {"tower": {}, "encoder": {}, "scale": {}}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        if rest.endswith(BYTES):
            scales = arrays[f"{part}.{rest.removesuffix(BYTES)}{SCALES}"]
            if array.ndim != 2 or scales.shape != array.shape[:1]:
                raise ValueError(f"{name} has no scale for each row")
            parts[part][rest.removesuffix(BYTES)] = array, scales
        elif not rest.endswith(SCALES):
            parts[part][rest] = array, None
    tower, encoder, scale = (_Arrays(parts[part]) for part in ("tower", "encoder", "scale"))
    return ReelCheckpoint(tower, encoder, scale, card)


class _Arrays(Mapping[str, Float32]):
    """The arrays of a part as float32, made when they are first used: a search needs few of them."""

    def __init__(self, stored: Mapping[str, _Stored]) -> None:
        self._stored = stored
        self._made: dict[str, Float32] = {}

    def __getitem__(self, name: str) -> Float32:
        if name not in self._made:
            array, scales = self._stored[name]
            self._made[name] = array.astype(np.float32) if scales is None else dequantise(array, scales)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _trained(arrays: Mapping[str, Any], facts: Mapping[str, Any]) -> ReelCheckpoint:
    """The model of a training: `config`, the name and what it was trained on become the card."""
    config = from_json(facts["config"])
    if not isinstance(config, ReelConfig):
        raise WeightsError(f"this is a {config.kind} model, not one of the default model's kind")
    return from_state(config, arrays, {"name": facts["name"], "training": facts["training"]})


def from_state(
    config: ReelConfig, state: Mapping[str, Float32], card: Mapping[str, Any] | None = None
) -> ReelCheckpoint:
    """The weights of a `ReelModule`, by the names of its state."""
    _check_text(config)
    tower: dict[str, Float32] = {}
    scale: dict[str, Float32] = {}
    encoder: dict[str, Float32] = {}
    for number, expert in enumerate(config.experts):
        for name in ("weight", "bias"):
            tower[f"into.{expert.name}.{name}"] = state[f"project.{number}.{name}"]
        for name in ("mean", "deviation"):
            scale[f"{expert.name}.{name}"] = state[f"scaling.{number}.{name}"]
    for name, array in state.items():
        if name.startswith(TEXT_HEAD):
            tower[f"caption.{name.removeprefix(TEXT_HEAD)}"] = array
        elif name.startswith(f"{TEXT_NETWORK}encoder."):
            encoder[name.removeprefix(TEXT_NETWORK)] = array
        elif name == "kinds" or name.startswith(("layers.", "out.")):
            tower[name] = array
    return ReelCheckpoint(tower, encoder, scale, {"config": to_json(config), **(card or {})})


def _check_text(config: ReelConfig) -> None:
    """The runtime has one sentence encoder, of which only the layers may have changed."""
    text, network = config.text, config.text.network
    same = network is not None and replace(network, dropout=MINILM.dropout) == MINILM
    if not (same and text.source == "minilm" and text.words == "bert" and text.pool == "sentence"):
        raise WeightsError("only models with the embedded sentence encoder run without torch (model.text)")
    if not (text.frozen_embeddings or text.frozen):
        raise WeightsError(
            "the sentence encoder's embeddings were trained, and the runtime has its own; train with "
            "model.text.frozen_embeddings=true"
        )


def is_quantised(array: Float32) -> bool:
    """Whether the exported file stores an array as bytes: large matrices only."""
    return array.ndim == 2 and array.size > 10_000
