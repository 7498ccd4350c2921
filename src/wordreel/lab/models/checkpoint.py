"""A trained joint embedding as search uses it, and its folder on disk.

A folder holds `model.safetensors` (every parameter and running statistic), `model.json` (the configuration
and what it was trained on) and whatever files its captions' tokenizer needs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.lab.models.batch import JointEmbedding, TokenBatch
from wordreel.lab.models.build import build
from wordreel.lab.models.clip import config as video_text
from wordreel.lab.models.clip.video_text import VideoTextModel
from wordreel.lab.models.collate import clip_rows, collate, with_line_vectors
from wordreel.lab.models.config import ModelConfig, from_json
from wordreel.lab.models.text.tokenizers import CaptionTokenizer, external_text, open_tokenizer, text_files
from wordreel.models.base import CheckpointModel, Explanation
from wordreel.models.joint.other_rows import LINES
from wordreel.models.joint.text_tower import DIM, TextTower
from wordreel.models.pooling import words_in
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track
from wordreel.util.atomic import atomic_write, make_dir

WEIGHTS, FACTS, KEY = "model.safetensors", "model.json", "wordreel"
FORMAT = 1
BATCH = 64
AGAIN = NextStep("copy it again from where it was trained, or train it again")

Module = TypeVar("Module", bound=nn.Module)


def save(
    folder: Path,
    module: JointEmbedding | VideoTextModel,
    name: str,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint folder. `training` says what the model was trained on, in plain values.

    The weight file carries its own description and is replaced as a whole, so that a kill leaves the old
    model or the new one; `model.json` is a copy of the description for people and other programs.
    """
    from safetensors.torch import save as pack

    make_dir(folder)
    state = {key: value.detach().cpu().contiguous() for key, value in module.state_dict().items()}
    facts = {
        "format": FORMAT,
        "name": name,
        "config": dataclasses.asdict(module.config),
        "weights": digest(state),
        "training": dict(training or {}),
    }
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    atomic_write(folder / WEIGHTS, pack(state, metadata={KEY: text}))
    atomic_write(folder / FACTS, text.encode())


def digest(state: Mapping[str, Tensor]) -> str:
    """Return a hash of every array with its name, type and shape."""
    digest = hashlib.sha256()
    for key in sorted(state):
        value = state[key]
        digest.update(f"{key}\x1f{value.dtype}\x1f{tuple(value.shape)}\x1f".encode())
        digest.update(value.detach().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the description of the model in a folder."""
    from safetensors import SafetensorError, safe_open

    path = folder / WEIGHTS
    if not path.is_file():
        inside = sorted(weights.parent for weights in folder.glob(f"*/best/{WEIGHTS}"))
        named = ", ".join(str(best.parent) for best in inside[:5])
        more = f"; it holds several: name one of {named}" if inside else "; name the folder of a training"
        raise WeightsMissing(f"{folder} is not a trained model: it has no {WEIGHTS}{more}")
    try:
        with safe_open(str(path), "numpy") as file:
            facts = json.loads((file.metadata() or {})[KEY])
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        why = "it has no description" if isinstance(error, KeyError) else str(error)
        raise WeightsCorrupt(f"{path} is not a model that wordreel has written ({why})", AGAIN) from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT or "config" not in facts:
        raise WeightsCorrupt(f"{path} was written by another version of wordreel", AGAIN)
    return facts


def load_module(folder: Path) -> tuple[JointEmbedding, dict[str, Any]]:
    """Load the module on the CPU in evaluation mode, and its description.

    Nothing is unpickled.
    """
    facts = read_facts(folder)
    return _load(folder, facts, lambda: build(from_json(facts["config"]))), facts


def load_video_text(folder: Path) -> tuple[VideoTextModel, dict[str, Any]]:
    """Call `load_module` for a model that reads frames."""
    facts = read_facts(folder)
    return _load(folder, facts, lambda: build(video_text.from_json(facts["config"]))), facts


def _load(folder: Path, facts: Mapping[str, Any], make: Callable[[], Module]) -> Module:
    from safetensors.torch import load_file

    path = folder / WEIGHTS
    state = load_file(path)
    if digest(state) != facts.get("weights"):
        raise WeightsCorrupt(f"{path} is damaged: its weights are not those it was written with", AGAIN)
    with torch.device("meta"):
        module = make()
    try:
        module.load_state_dict(state, assign=True)
    except RuntimeError:  # a line for every array that does not fit
        raise WeightsError(f"{path} does not fit its own description", AGAIN) from None
    return module.eval()


class TrainedModel(CheckpointModel):
    """A model from a checkpoint folder, on the CPU."""

    def __init__(self, folder: Path, store: WeightStore | None = None) -> None:
        self.folder, self._store = folder, store
        self._module, self._facts = load_module(folder)
        self.name: str = str(self._facts.get("name", folder.name))
        self.experts: tuple[str, ...] = self._module.rows
        self.config: ModelConfig = self._module.config
        self.track_experts: tuple[str, ...] = self.config.names
        self.dim: int = self._module.dim
        self.text_files = text_files(folder, self.config.text)
        self.external_text = external_text(self.config.text)
        self._tower = TextTower((store or WeightStore()).root)
        self._lines = {e.name for e in self.config.experts if e.name in LINES and e.dim == DIM}
        self.track_dims = {e.name: e.dim for e in self.config.experts if e.name not in self._lines}

    @property
    def facts(self) -> Mapping[str, Any]:
        return self._facts

    @cached_property
    def fingerprint(self) -> str:
        described = json.dumps(self._facts, sort_keys=True)
        parts = (self.name, described, self._tokenizer.fingerprint)
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """Embed each clip from the rows that share time with it."""
        config = self._module.config
        vectors = np.zeros((len(clips), len(self.experts), self.dim), np.float32)
        available = np.zeros(vectors.shape[:2], bool)
        known = {name: tracks[name] for name in config.names if name in tracks}
        known |= {n: with_line_vectors(n, known[n], self._tower) for n in self._lines & known.keys()}
        for start in range(0, len(clips), BATCH):
            some = clips[start : start + BATCH]
            rows = [{name: clip_rows(track, clip) for name, track in known.items()} for clip in some]
            with torch.inference_mode():
                videos = self._module.embed_videos(collate(rows, config))
            vectors[start : start + len(some)] = videos.vectors.float().numpy()
            available[start : start + len(some)] = videos.available.numpy()
        return vectors, available

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        embeddings: list[QueryEmbedding] = []
        for start in range(0, len(texts), BATCH):
            some = list(texts[start : start + BATCH])
            tokens, mask = self._tokenizer.encode(some)
            with torch.inference_mode():
                encoded = self._module.embed_queries(
                    TokenBatch(torch.from_numpy(tokens), torch.from_numpy(mask))
                )
            vectors, weights = encoded.vectors.float().numpy(), encoded.weights.float().numpy()
            embeddings += [QueryEmbedding(vectors[n], weights[n], text) for n, text in enumerate(some)]
        return embeddings

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        """Return the words an expert read in the clip, or the weight that the query gives it."""
        explanation: Explanation = {}
        for row, expert in enumerate(self.experts):
            if expert not in tracks or clip_rows(tracks[expert], clip) is None:
                continue
            words = words_in(tracks[expert], clip.start, clip.end)
            weight = float(query.weights[row]) / max(float(query.weights.sum()), 1e-9)
            explanation[expert] = (f"“{words}”" if words else f"{weight:.0%} of the query's attention", None)
        return explanation

    @cached_property
    def _tokenizer(self) -> CaptionTokenizer:
        return open_tokenizer(self._module.config.text, self.folder, self._store)
