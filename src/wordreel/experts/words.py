"""Words as numbers: the one place where experts that read text reach the sentence encoder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wordreel.types import Float32
from wordreel.weights.store import Store

DIM = 384
WEIGHTS = "minilm"

Embed = Callable[[list[str]], Float32]


def sentence_embedder(store: Store) -> Embed:
    """A function from lines of text to unit rows `[lines, 384]`."""
    from wordreel.nets.sentences import SentenceEncoder

    encoder = SentenceEncoder(store)

    def embed(lines: list[str]) -> Float32:
        return np.ascontiguousarray(encoder.encode(lines), dtype=np.float32)

    return embed
