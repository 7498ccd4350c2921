"""Prepared training data in one small file, to train where there are no libraries, media or weight store.

A safetensors file. Features and the sentence encoder's matrices are bytes with a scale per row
(`runtime/mapped_arrays.py`), word vectors float16, token numbers and captions exact. Experts that a model
pools into segments are packed as segments.
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
from wordreel.lab.models.config import ExpertConfig, to_json
from wordreel.lab.training.data.packed import Packed
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.state import differences
from wordreel.lab.training.training_data import TrainingData
from wordreel.runtime.mapped_arrays import dequantise, quantise
from wordreel.types import Float32
from wordreel.util.atomic import atomic_write

FORMAT, KEY = 1, "wordreel.pack"
SCALES, COUNTS, TIMES = "/scales", "/counts", "/times"
TEXT, OWN = "text.", "words"  # own: the sentence tokens are the captions' own
ABSENT = "pooler."  # of the encoder, never used: not packed, zeros when unpacked

Arrays = dict[str, NDArray[Any]]


def save_pack(path: Path, recipe: Recipe, data: TrainingData) -> None:
    """Write the data of a recipe, with the sentence encoder where the recipe needs it."""
    if not isinstance(data.train_words, Packed):
        raise TrainingError(
            "transcripts that are drawn from in every step (data.segment_words) cannot be packed"
        )
    if data.teachers is not None:
        raise TrainingError(
            "teachers are not packed: pack without teach.teachers, and name their folders when you train"
        )
    from safetensors.numpy import save

    arrays: Arrays = {}
    facts: dict[str, Any] = {"format": FORMAT, "model": _model_facts(recipe), "sentences": ""}
    for split, pairs, words in (
        ("train", data.train, data.train_words),
        ("val", data.val, data.val_words),
    ):
        if pairs is not None and words is not None:
            facts[split] = {
                "name": pairs.name,
                "ids": pairs.ids,
                "shares": pairs.shares,
                "missing": pairs.missing,
            }
            _put_pairs(arrays, split, pairs, recipe.model.experts)
            _put_words(arrays, f"{split}.{OWN}", words)
    if data.sentence_tokens is data.train_words:
        facts["sentences"] = OWN
    elif data.sentence_tokens is not None:
        facts["sentences"] = "own"
        _put_words(arrays, "sentences", data.sentence_tokens)
    if needs_text_weights(recipe):
        _put_network(arrays, data.text_weights)
    atomic_write(path, save(arrays, metadata={KEY: json.dumps(facts)}))


def needs_text_weights(recipe: Recipe) -> bool:
    """Whether training starts from the embedded sentence encoder, or compares captions by it."""
    return recipe.start.text == "minilm" or bool(recipe.loss.soft_targets)


def read_pack(
    path: str | Path, key: str, version: int, what: str, command: str
) -> tuple[dict[str, Any], Arrays]:
    """The facts under `key` and the arrays of a packed file; `command` packs such a file again."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            facts = json.loads((file.metadata() or {})[key])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise TrainingError(
            f"{path} does not hold packed {what} ({error})", NextStep("pack again", command)
        ) from None
    if facts.get("format") != version:
        raise TrainingError(f"{path} has format {facts.get('format')}, this program reads {version}")
    return facts, arrays


def load_pack(path: str | Path, recipe: Recipe) -> TrainingData:
    """Read what `save_pack` wrote, for a recipe with the same text side and the same or fewer experts."""
    facts, arrays = read_pack(path, KEY, FORMAT, "training data", "train RECIPE … --pack FILE")
    changed = _changes(facts["model"], json.loads(json.dumps(_model_facts(recipe))))
    if changed:
        raise TrainingError(f"{path} was packed for another model ({', '.join(changed)}); pack it again")
    words = _words(arrays, f"train.{OWN}")
    sentences = {"": None, OWN: words}.get(facts["sentences"]) or (
        _words(arrays, "sentences") if facts["sentences"] else None
    )
    text = _network(arrays)
    if text is None and needs_text_weights(recipe):
        raise TrainingError(
            f"{path} does not hold the sentence encoder, which start.text=minilm and loss.soft_targets need; "
            "pack it again with the same settings"
        )
    return TrainingData(
        _pairs(arrays, "train", facts["train"]),
        words,
        _pairs(arrays, "val", facts["val"]) if "val" in facts else None,
        _words(arrays, f"val.{OWN}") if "val" in facts else None,
        sentence_tokens=sentences,
        text_weights=text,
    )


def _model_facts(recipe: Recipe) -> dict[str, Any]:
    """What the packed arrays depend on."""
    model = to_json(recipe.model)
    text = {key: model["text"][key] for key in ("words", "dim", "source", "max_tokens", "stop_words")}
    experts = [{key: e[key] for key in ("name", "dim", "pool", "max_tokens")} for e in model["experts"]]
    return {"experts": {expert["name"]: expert for expert in experts}, "text": text}


def _changes(packed: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What a recipe needs and the pack does not have."""
    experts = {name: packed["experts"].get(name) for name in wanted["experts"]}
    return differences({**packed, "experts": experts}, wanted, "model")


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
    for key in [key for key in arrays if key.startswith(prefix) and key.endswith(COUNTS)]:
        name = key.removesuffix(COUNTS)
        values = dequantise(arrays[name], arrays[name + SCALES])
        rows[name.removeprefix(prefix)] = Packed(
            values, arrays[key].astype(np.int64), arrays.get(name + TIMES)
        )
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
    return Packed(
        values.astype(np.int64) if values.dtype.kind in "iu" else values,
        arrays[key + COUNTS].astype(np.int64),
    )


def _put_network(arrays: Arrays, weights: Mapping[str, Float32] | None) -> None:
    from wordreel.lab.models.text.pretrained import minilm_weights

    for name, array in (minilm_weights() if weights is None else weights).items():
        if name.startswith(ABSENT):
            continue
        if array.ndim == 2:
            arrays[TEXT + name], arrays[TEXT + name + SCALES] = quantise(array)
        else:
            arrays[TEXT + name] = np.ascontiguousarray(array)


def _network(arrays: Arrays) -> dict[str, Float32] | None:
    weights: dict[str, Float32] = {}
    for key, array in arrays.items():
        if key.startswith(TEXT) and not key.endswith(SCALES):
            scales = arrays.get(key + SCALES)
            weights[key.removeprefix(TEXT)] = array if scales is None else dequantise(array, scales)
    if not weights:
        return None
    hidden = len(weights["embeddings.LayerNorm.weight"])
    weights[f"{ABSENT}dense.weight"] = np.zeros((hidden, hidden), np.float32)
    weights[f"{ABSENT}dense.bias"] = np.zeros(hidden, np.float32)
    return weights
