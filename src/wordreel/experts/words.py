"""Words as numbers: the one place where experts that read text reach the sentence encoder."""

from __future__ import annotations

from collections.abc import Callable

from wordreel.nets.sentences import DIM, WEIGHTS, SentenceEncoder
from wordreel.types import Float32
from wordreel.weights.store import WeightStore

__all__ = ["DIM", "WEIGHTS", "Embed", "sentence_embedder"]

Embed = Callable[[list[str]], Float32]


def sentence_embedder(store: WeightStore) -> Embed:
    """A function from lines of text to unit rows `[lines, 384]`."""
    return SentenceEncoder(store).encode
