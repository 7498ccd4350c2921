"""What the runs work on: three splits of features, captions as token numbers, and the sentence encoder.

`gather` reads them from a library. `save` and `load` keep them in one small file, so that training can go on
where there is neither the library nor a tokenizer. The file is not exact: features and the encoder's
matrices are 8-bit whole numbers with a scale per row (x ≈ scale · n, n from −127 to 127). The table of words
holds only those that a caption uses, and captions are numbered by that shorter table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.lab.datasets.types import Caption
from wordreel.lab.training.data.packed import Packed, pack
from wordreel.lab.training.data.pairs import Pairs

SPLITS = ("train", "val", "test")
EXPERTS = ("clip", "motion", "faces", "ocr")
MOST_TOKENS = 30
WORDS = "embeddings.word_embeddings.weight"
PLACES = "embeddings.position_embeddings.weight"
LEVELS = 127


@dataclass(frozen=True)
class Study:
    """`pairs` and `tokens` by split, `network` the encoder's weights under BERT's names.

    `tokens[split]` has one item per caption, in the order of `pairs[split].texts`.
    """

    pairs: Mapping[str, Pairs]
    tokens: Mapping[str, Packed]
    network: Mapping[str, NDArray[np.float32]]
    heads: int = 12
    packed: bool = False

    def facts(self) -> dict[str, Any]:
        """What a result has to say about its data."""
        return {
            "features": "8-bit with a scale per row" if self.packed else "as stored",
            "encoder": "8-bit with a scale per row" if self.packed else "float32",
            "splits": {
                name: {
                    "videos": len(pairs),
                    "missing": pairs.missing,
                    "captions": int(pairs.counts.sum()),
                    "with": {expert: int((rows.counts > 0).sum()) for expert, rows in pairs.rows.items()},
                }
                for name, pairs in self.pairs.items()
            },
        }


def gather(
    library: Path,
    captions: Mapping[str, Sequence[str]],
    splits: Mapping[str, Sequence[str]],
    experts: Sequence[str] = EXPERTS,
    most: int = 0,
) -> Study:
    """Read everything from a library; `most` keeps so many videos of a split, for trying things out."""
    from wordreel.catalogue.store import LibraryStore
    from wordreel.lab.models.config import MINILM, TextConfig
    from wordreel.lab.models.text.pretrained import minilm_weights
    from wordreel.lab.models.text.tokenizers import open_tokenizer
    from wordreel.lab.training.data import from_library

    store = LibraryStore.open(library)
    pairs = {}
    for split in SPLITS:
        ids = [name for name in splits[split] if name in captions][: most or None]
        pairs[split] = from_library(store, {name: captions[name] for name in ids}, experts)
    source = open_tokenizer(TextConfig("bert", 384, "mean", network=MINILM, max_tokens=MOST_TOKENS))
    every = sorted({text for part in pairs.values() for text in part.texts})
    numbers = []
    for start in range(0, len(every), 4096):
        found, mask = source.encode(every[start : start + 4096])
        numbers += [row[keep] for row, keep in zip(found, mask, strict=True)]
    known = dict(zip(every, numbers, strict=True))
    tokens = {split: pack([known[text] for text in part.texts]) for split, part in pairs.items()}
    return shortened(Study(pairs, tokens, minilm_weights()))


def shortened(study: Study) -> Study:
    """Without the rows of the encoder's tables that no caption uses; tokens are numbered anew.

    Number 0 is padding and stays. Every caption's states are what they were.
    """
    used = np.unique(np.concatenate([[0], *(packed.values for packed in study.tokens.values())]))
    longest = max(packed.longest for packed in study.tokens.values())
    network = dict(study.network)
    network[WORDS] = network[WORDS][used]
    network[PLACES] = network[PLACES][: max(longest, 1)]
    tokens = {
        split: Packed(np.searchsorted(used, packed.values), packed.counts)
        for split, packed in study.tokens.items()
    }
    return replace(study, tokens=tokens, network=network)


def save(study: Study, path: Path) -> None:
    """One compressed file of plain arrays."""
    held: dict[str, NDArray[Any]] = {}
    told: dict[str, Any] = {"heads": study.heads, "network": {}, "splits": {}}
    for name, array in study.network.items():
        told["network"][name] = array.shape
        if array.ndim == 2:
            held[f"network/{name}"], held[f"network/{name}/scale"] = rounded(array)
        else:
            held[f"network/{name}"] = array
    for split, pairs in study.pairs.items():
        told["splits"][split] = {
            "name": pairs.name,
            "missing": pairs.missing,
            "ids": pairs.ids,
            "captions": [[caption.text for caption in captions] for captions in pairs.captions],
        }
        packed = study.tokens[split]
        held[f"{split}/tokens"] = packed.values.astype(np.uint16 if packed.values.max() < 65536 else np.int32)
        held[f"{split}/lengths"] = packed.counts.astype(np.uint8)
        for expert, rows in pairs.rows.items():
            key = f"{split}/{expert}"
            held[key], held[f"{key}/scale"] = rounded(rows.values)
            held[f"{key}/counts"] = rows.counts.astype(np.uint16)
            if rows.times is not None:
                held[f"{key}/times"] = rows.times.astype(np.float16)
    held["told"] = np.frombuffer(json.dumps(told).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, **held)  # type: ignore[arg-type]


def load(path: Path) -> Study:
    """What `save` wrote."""
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    told = json.loads(held["told"].tobytes())

    def array(key: str) -> NDArray[np.float32]:
        scale = held.get(f"{key}/scale")
        return held[key] if scale is None else held[key].astype(np.float32) * scale[:, None]

    pairs, tokens = {}, {}
    for split, facts in told["splits"].items():
        rows = {}
        for key in [key for key in held if key.startswith(f"{split}/") and key.endswith("/counts")]:
            expert = key.split("/")[1]
            times = held.get(f"{split}/{expert}/times")
            rows[expert] = Packed(
                array(f"{split}/{expert}"),
                held[key].astype(np.int64),
                None if times is None else times.astype(np.float32),
            )
        pairs[split] = Pairs(
            facts["name"],
            tuple(facts["ids"]),
            rows,
            tuple(tuple(Caption(text) for text in texts) for texts in facts["captions"]),
            missing=facts["missing"],
        )
        lengths = held[f"{split}/lengths"].astype(np.int64)
        tokens[split] = Packed(held[f"{split}/tokens"].astype(np.int64), lengths)
    network = {name: array(f"network/{name}").reshape(shape) for name, shape in told["network"].items()}
    return Study(pairs, tokens, network, told["heads"], packed=True)


def rounded(values: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """`values [rows, n]` as whole numbers and a scale for each row; a row of zeros has the scale 0."""
    scale = np.abs(values).max(axis=1, initial=0) / LEVELS
    safe = np.where(scale > 0, scale, 1)[:, None]
    return np.round(values / safe).astype(np.int8), scale.astype(np.float32)


def lost(study: Study, again: Study) -> dict[str, dict[str, float]]:
    """What saving cost: ‖x' − x‖ / ‖x‖ of features' rows (test split) and of the encoder's matrices."""

    def apart(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
        size = np.linalg.norm(a, axis=1)
        return float(np.mean(np.linalg.norm(a - b, axis=1)[size > 0] / size[size > 0])) if len(a) else 0.0

    rows, others = study.pairs["test"].rows, again.pairs["test"].rows
    matrices = [name for name, array in study.network.items() if array.ndim == 2 and array.any()]
    return {
        "features": {name: apart(rows[name].values, others[name].values) for name in rows},
        "encoder": {
            "words": apart(study.network[WORDS], again.network[WORDS]),
            "layers": float(np.mean([apart(study.network[n], again.network[n]) for n in matrices])),
        },
    }
