"""Pictures with captions in one file, to train where there are no media and no weight store.

A safetensors file: pictures as WebP, sentence vectors as bytes with a scale per row, the weights that
training starts from as float16 (statistics of batch norms as float32).
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import TrainingError
from wordreel.lab.datasets.types import Caption
from wordreel.lab.training.appearance.picture_set import AppearanceData, PictureSet
from wordreel.lab.training.appearance.recipe import AppearanceRecipe
from wordreel.lab.training.appearance.start import COUNTERS
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.pack_file import Arrays, read_pack
from wordreel.runtime.quantise import dequantise, quantise
from wordreel.util.atomic import atomic_write

FORMAT, KEY = 1, "wordreel.pictures"
START = "start."


def save_pictures(path: Path, recipe: AppearanceRecipe, data: AppearanceData) -> None:
    """Write the data as a whole or not at all."""
    from safetensors.numpy import save

    arrays: Arrays = {}
    facts: dict[str, Any] = {"format": FORMAT, "size": recipe.model.size}
    for split, pictures in (("train", data.train), ("val", data.val)):
        if pictures is None:
            continue
        pairs = pictures.pairs
        facts[split] = {
            "name": pairs.name,
            "names": pictures.names,
            "ids": pairs.ids,
            "shares": pairs.shares,
            "missing": pairs.missing,
        }
        texts = json.dumps([[caption.text for caption in captions] for captions in pairs.captions])
        arrays[f"{split}.texts"] = np.frombuffer(zlib.compress(texts.encode(), 9), np.uint8)
        arrays[f"{split}.source"] = pairs.source.astype(np.int16)
        arrays[f"{split}.counts"] = pictures.counts.astype(np.int32)
        arrays[f"{split}.lengths"] = pictures.lengths.astype(np.int32)
        arrays[f"{split}.content"] = pictures.content
        arrays[f"{split}.sentences"], arrays[f"{split}.scales"] = quantise(pictures.sentences)
    for name, array in data.start.items():
        if not name.endswith(COUNTERS):
            small = array.astype(np.float16) if array.ndim > 1 else array
            arrays[START + name] = np.ascontiguousarray(small)
    atomic_write(path, save(arrays, metadata={KEY: json.dumps(facts)}))


def load_pictures(path: str | Path, recipe: AppearanceRecipe) -> AppearanceData:
    """Read what `save_pictures` wrote, for a recipe with the same size of pictures."""
    facts, arrays = read_pack(path, KEY, FORMAT, "pictures", "train appearance … --pack FILE")
    if facts["size"] != recipe.model.size:
        raise TrainingError(
            f"{path} has pictures of {facts['size']} pixels, the recipe says {recipe.model.size}: set "
            f"model.size={facts['size']}, or pack them again"
        )
    start = {
        name.removeprefix(START): array.astype(np.float32)
        for name, array in arrays.items()
        if name.startswith(START)
    }
    val = _pictures(arrays, "val", facts["val"]) if "val" in facts else None
    return AppearanceData(_pictures(arrays, "train", facts["train"]), val, start)


def _pictures(arrays: Arrays, split: str, facts: dict[str, Any]) -> PictureSet:
    texts = json.loads(zlib.decompress(arrays[f"{split}.texts"].tobytes()))
    pairs = Pairs(
        facts["name"],
        tuple(facts["ids"]),
        {},
        tuple(tuple(Caption(text) for text in captions) for captions in texts),
        source=arrays[f"{split}.source"].astype(np.int64),
        shares=tuple(facts["shares"]),
        missing=facts["missing"],
    )
    return PictureSet(
        pairs,
        tuple(facts["names"]),
        arrays[f"{split}.counts"].astype(np.int64),
        arrays[f"{split}.lengths"].astype(np.int64),
        arrays[f"{split}.content"],
        dequantise(arrays[f"{split}.sentences"], arrays[f"{split}.scales"]),
    )
