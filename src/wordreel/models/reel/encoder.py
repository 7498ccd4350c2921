"""The sentence encoder as it was trained further: MiniLM's words and places, our layers."""

from __future__ import annotations

import hashlib

import numpy as np

from wordreel.models.reel.checkpoint import TUNED, Checkpoint
from wordreel.models.text.minilm import minilm_weights
from wordreel.nets.bert import HEADS, build
from wordreel.nets.sentences import SentenceEncoder
from wordreel.weights.derived import write_aside
from wordreel.weights.store import WeightStore


def encoder(store: WeightStore, kept: Checkpoint) -> SentenceEncoder:
    """The encoder of a checkpoint. Its network is built once and kept beside the weights."""
    place = store.root / "derived" / f"reel-{layers_of(kept)}.onnx"
    if not place.exists():
        write_aside(place, build({**minilm_weights(store), **kept.encoder}, HEADS).SerializeToString())
    return SentenceEncoder(store, place, kept.digest)


def layers_of(kept: Checkpoint) -> str:
    """What the built network is named after: the file's hash, or, of tuned files, that of their layers alone,
    so that all files tuned from one share one network."""
    if TUNED not in kept.card:
        return kept.digest[:16]
    seen = hashlib.sha256()
    for name in sorted(kept.encoder):
        seen.update(name.encode() + np.ascontiguousarray(kept.encoder[name]).tobytes())
    return f"layers-{seen.hexdigest()[:16]}"
