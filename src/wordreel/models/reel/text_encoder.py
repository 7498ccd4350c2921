"""The sentence encoder of a trained default model: MiniLM's embeddings, our layers."""

from __future__ import annotations

import hashlib

import numpy as np

from wordreel.models.reel.checkpoint import TUNED, ReelCheckpoint
from wordreel.runtime.array_cache import write_shared
from wordreel.runtime.sentences import SentenceEncoder
from wordreel.runtime.store import WeightStore


def text_encoder(store: WeightStore, checkpoint: ReelCheckpoint) -> SentenceEncoder:
    """The encoder of a checkpoint. Its network is built once and stored beside the weights."""
    path = store.root / "derived" / f"reel-{network_name(checkpoint)}.onnx"
    if not path.exists():
        from wordreel.lab.models.text.minilm import minilm_weights
        from wordreel.runtime.nets.bert import HEADS, build

        write_shared(path, build({**minilm_weights(store), **checkpoint.encoder}, HEADS).SerializeToString())
    return SentenceEncoder(store, path, checkpoint.digest)


def network_name(checkpoint: ReelCheckpoint) -> str:
    """What the built network is named after: the file's hash, or, of tuned files, that of their layers alone,
    so that all files tuned from one share one network."""
    if TUNED not in checkpoint.card:
        return checkpoint.digest[:16]
    digest = hashlib.sha256()
    for name in sorted(checkpoint.encoder):
        digest.update(name.encode() + np.ascontiguousarray(checkpoint.encoder[name]).tobytes())
    return f"layers-{digest.hexdigest()[:16]}"
