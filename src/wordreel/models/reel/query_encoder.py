"""One small network for queries, in place of the two sentence encoders of the default model.

It has MiniLM's embeddings and some layers, whose mean over a query's tokens two matrices turn into what the
bridge's encoder and the model's own would say (`studies/distil_query_encoder.py` trains it). The file stands
for one sentence encoder and says which: models with another, and longer texts than it learned, do without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.atomic import atomic_write
from wordreel.checksum import file_sha256
from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.models.reel.checkpoint import BYTES, SCALES, ReelCheckpoint, is_quantised
from wordreel.models.reel.text_encoder import layers_name, network_name
from wordreel.nets.derived import derived_network
from wordreel.nets.runtime import Network
from wordreel.types import Float32
from wordreel.weights.quantise import dequantise, quantise
from wordreel.weights.store import WeightStore

FILE = Path(__file__).parent / "queries.safetensors"
KEY = "queries"  # of the file's header
HEADS = ("bridge", "reel")
MAX_TOKENS = 40  # that it learned

Pieces = Callable[[Sequence[str], int], list[list[int]]]


def export(
    path: Path, arrays: Mapping[str, Float32], card: Mapping[str, Any], teacher: ReelCheckpoint
) -> None:
    """Write layers and heads, matrices in bytes, and the names of the sentence encoder they stand for."""
    from safetensors.numpy import save

    small: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in arrays.items():
        if is_quantised(array):
            small[name + BYTES], small[name + SCALES] = quantise(array)
        else:
            small[name] = array.astype(np.float16)
    about = {**card, "stands_for": [teacher.digest[:16], layers_name(teacher)]}
    atomic_write(path, save(small, metadata={KEY: json.dumps(about, sort_keys=True)}))


def read(path: Path = FILE) -> tuple[dict[str, Float32], dict[str, Any]]:
    """Layers and heads as float32, and the card."""
    arrays: dict[str, Float32] = {}
    with opened(path) as (file, card):
        for name in file.keys():  # noqa: SIM118 - not a mapping
            if name.endswith(BYTES):
                plain = name.removesuffix(BYTES)
                arrays[plain] = dequantise(file.get_tensor(name), file.get_tensor(plain + SCALES))
            elif not name.endswith(SCALES):
                arrays[name] = file.get_tensor(name).astype(np.float32)
    return arrays, card


@contextmanager
def opened(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A file and its card; a clear error if it is missing or damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            card = json.loads((file.metadata() or {})[KEY])
            if not isinstance(card["stands_for"], list):
                raise TypeError("what it stands for is no list")
            yield file, card
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise WeightsCorrupt(
            f"{path} is no encoder of queries ({error})", NextStep("install wordreel again")
        ) from None


@dataclass(frozen=True)
class QueryEncoder:
    """The small network of one file, for models whose sentence encoder it stands for."""

    store: WeightStore
    pieces: Pieces  # a text's word pieces, at most so many
    path: Path = FILE

    def encode(self, text: str) -> tuple[Float32, Float32] | None:
        """What the bridge's encoder and the model's own would say, unit vectors; None of a long text."""
        tokens = self.pieces([text], MAX_TOKENS + 1)[0]
        if len(tokens) > MAX_TOKENS:
            return None
        ids = np.array([tokens], np.int64)
        vectors = self._network(input_ids=ids, attention_mask=np.ones_like(ids))
        first, second = (vectors[head][0] for head in HEADS)
        return first, second

    def stands_for(self, checkpoint: ReelCheckpoint) -> bool:
        """Whether it learned from the sentence encoder of a checkpoint."""
        with opened(self.path) as (_, card):
            return network_name(checkpoint) in card["stands_for"]

    @cached_property
    def _network(self) -> Network:
        return derived_network(
            self.store.root, f"queries-{file_sha256(self.path)[:16]}", lambda: build(self.store, self.path)
        )


def build(store: WeightStore, path: Path) -> bytes:
    """The network in 8 bits: `input_ids`, `attention_mask [n, tokens]` to unit `bridge`, `reel [n, 384]`."""
    from wordreel.lab.models.text.minilm import minilm_weights
    from wordreel.nets.bert import HEADS as ATTENTION_HEADS
    from wordreel.nets.bert import build_with_heads
    from wordreel.nets.quantise import quantise_products

    arrays, _ = read(path)
    known = {name: array for name, array in minilm_weights(store).items() if name.startswith("embeddings.")}
    heads = {head: (arrays[f"heads.{head}.weight"], arrays[f"heads.{head}.bias"]) for head in HEADS}
    return quantise_products(
        build_with_heads({**known, **arrays}, ATTENTION_HEADS, heads).SerializeToString()
    )
