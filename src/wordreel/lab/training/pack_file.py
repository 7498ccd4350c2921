"""Prepared training data in one small file, to train where there are no libraries or media.

A safetensors file. Features are bytes with a scale per row (`runtime/mapped_arrays.py`), word vectors
float16, token numbers and captions exact.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.datasets.types import Caption
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.config import ExpertConfig, ModelConfig, to_json
from wordreel.lab.training.data.packed import Packed
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.saved_state import differences
from wordreel.lab.training.training_data import TrainingData
from wordreel.runtime.mapped_arrays import dequantise, quantise
from wordreel.util.atomic import atomic_write

FORMAT, KEY = 1, "wordreel.pack"
SCALES, COUNTS, TIMES = "/scales", "/counts", "/times"

Arrays = dict[str, NDArray[Any]]


def save_pack(path: Path, recipe: Recipe, data: TrainingData) -> None:
    """Write the data of a recipe to one file."""
    model = _model(recipe)
    if not isinstance(data.train_words, Packed):
        raise TrainingError(
            "transcripts that are drawn from in every step (data.segment_words) cannot be packed"
        )
    if data.teachers is not None:
        raise TrainingError("teachers are not packed: leave out teach.teachers")
    from safetensors.numpy import save

    arrays: Arrays = {}
    facts: dict[str, Any] = {"format": FORMAT, "model": _model_facts(model)}
    splits = {"train": (data.train, data.train_words), "val": (data.val, data.val_words)}
    for split, (pairs, words) in splits.items():
        if pairs is not None and words is not None:
            facts[split] = {key: getattr(pairs, key) for key in ("name", "ids", "shares", "missing")}
            _put_pairs(arrays, split, pairs, model.experts)
            _put_words(arrays, f"{split}.words", words)
    atomic_write(path, save(arrays, metadata={KEY: json.dumps(facts)}))


def load_pack(path: str | Path, recipe: Recipe) -> TrainingData:
    """Read what `save_pack` wrote, for a recipe with the same text side and the same or fewer experts."""
    from safetensors import SafetensorError, safe_open

    again = NextStep("pack again", "train library RECIPE … --pack FILE")
    try:
        with safe_open(str(path), framework="numpy") as file:
            facts = json.loads((file.metadata() or {})[KEY])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise TrainingError(f"{path} does not hold packed training data ({error})", again) from None
    if facts.get("format") != FORMAT:
        raise TrainingError(f"{path} has format {facts.get('format')}, this program reads {FORMAT}", again)
    if recipe.teach.teachers or recipe.teach.denoise:
        raise TrainingError(
            "teachers read libraries or published features, and not a packed file",
            NextStep("train on what was packed", command="train library RECIPE … --teacher DIR"),
        )
    wanted = json.loads(json.dumps(_model_facts(_model(recipe))))
    packed = facts["model"]
    experts = {name: packed["experts"].get(name) for name in wanted["experts"]}  # the others are not read
    if changed := differences({**packed, "experts": experts}, wanted, "model"):
        raise TrainingError(f"{path} was packed for another model ({', '.join(changed)}); pack it again")
    validated = "val" in facts
    return TrainingData(
        _pairs(arrays, "train", facts["train"]),
        _words(arrays, "train.words"),
        _pairs(arrays, "val", facts["val"]) if validated else None,
        _words(arrays, "val.words") if validated else None,
    )


def _model(recipe: Recipe) -> ModelConfig:
    if isinstance(recipe.model, VideoTextConfig):
        raise TrainingError(f"the recipe {recipe.name} trains on frames, which cannot be packed")
    return recipe.model


def _model_facts(model: ModelConfig) -> dict[str, Any]:
    """Return what the packed arrays depend on."""
    values = to_json(model)
    text = {key: values["text"][key] for key in ("words", "dim", "source", "max_tokens", "stop_words")}
    experts = [{key: e[key] for key in ("name", "dim", "pool", "max_tokens")} for e in values["experts"]]
    return {"experts": {expert["name"]: expert for expert in experts}, "text": text}


def _put_pairs(arrays: Arrays, split: str, pairs: Pairs, experts: tuple[ExpertConfig, ...]) -> None:
    texts = json.dumps([[caption.text for caption in captions] for captions in pairs.captions])
    arrays[f"{split}.texts"] = np.frombuffer(zlib.compress(texts.encode(), 9), np.uint8)
    arrays[f"{split}.source"] = pairs.source.astype(np.int16)
    if not np.isnan(spans := pairs.spans).all():
        arrays[f"{split}.spans"] = spans
    for expert in experts:
        rows = pairs.rows.get(expert.name)
        if rows is None or not len(rows.values):
            continue
        key = f"{split}.rows.{expert.name}"
        arrays[key], arrays[key + SCALES] = quantise(np.asarray(rows.values, np.float32))
        arrays[key + COUNTS] = rows.counts.astype(np.int32)
        if rows.times is not None:
            arrays[key + TIMES] = rows.times


def _pairs(arrays: Arrays, split: str, facts: Mapping[str, Any]) -> Pairs:
    texts = json.loads(zlib.decompress(arrays[f"{split}.texts"].tobytes()))
    spans = iter(arrays.get(f"{split}.spans", np.full((sum(map(len, texts)), 2), np.nan)).tolist())
    captions = tuple(tuple(_caption(text, *next(spans)) for text in video) for video in texts)
    rows = {}
    prefix = f"{split}.rows."
    for name in [key for key in arrays if key.startswith(prefix) and key + COUNTS in arrays]:
        values = dequantise(arrays[name], arrays[name + SCALES])
        counts = arrays[name + COUNTS].astype(np.int64)
        rows[name.removeprefix(prefix)] = Packed(values, counts, arrays.get(name + TIMES))
    return Pairs(
        facts["name"],
        tuple(facts["ids"]),
        rows,
        captions,
        source=arrays[f"{split}.source"].astype(np.int64),
        shares=tuple(facts["shares"]),
        missing=facts["missing"],
    )


def _caption(text: str, start: float, end: float) -> Caption:
    return Caption(text, None if np.isnan(start) else start, None if np.isnan(end) else end)


def _put_words(arrays: Arrays, key: str, words: Packed) -> None:
    values = words.values
    if values.dtype.kind in "iu":
        values = values.astype(np.uint16 if values.max(initial=0) < 1 << 16 else np.int32)
    arrays[key], arrays[key + COUNTS] = values, words.counts.astype(np.int32)


def _words(arrays: Arrays, key: str) -> Packed:
    values = arrays[key]
    values = values.astype(np.int64) if values.dtype.kind in "iu" else values
    return Packed(values, arrays[key + COUNTS].astype(np.int64))
