"""Words of a user's own, beside the sentence encoder: names, codes and dialect that it never learned.

    own(text) = Σ_w table[w] / √n    over the n distinct words of the text that the table has

Only tuned models have a table (`wordreel tune`). Words are runs of letters and digits in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordreel.errors import WeightsCorrupt
from wordreel.models.reel.checkpoint import ReelCheckpoint
from wordreel.types import Float32, Int64

TABLE, LIST = "words", "words"  # the array of the tower, and the list in the card
MOST = 24  # distinct words of a text that count
LONGEST = 40  # characters of a word

_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """The distinct words of a text, in their order.

    >>> words_of("Bella, the BELLA of unit_7b!")
    ['bella', 'the', 'of', 'unit', '7b']
    """
    return list(dict.fromkeys(word for word in _WORD.findall(text.lower()) if len(word) <= LONGEST))


def ids_of(texts: Sequence[str], index_of: Mapping[str, int]) -> Int64:
    """`[texts, MOST]` indices of each text's words in a table; -1 where there are no more."""
    indices = np.full((len(texts), MOST), -1, np.int64)
    for row, text in enumerate(texts):
        known = [index_of[word] for word in words_of(text) if word in index_of][:MOST]
        indices[row, : len(known)] = known
    return indices


def shares(ids: Int64) -> Float32:
    """`[texts, MOST]`: 1/√n for each word, 0 elsewhere."""
    there = ids >= 0
    many = np.maximum(there.sum(axis=1, keepdims=True), 1)
    return np.asarray(there / np.sqrt(many), np.float32)


def added(table: Float32, ids: Int64, share: Float32) -> Float32:
    """`[texts, dim]`: what the words add."""
    if not len(table):
        return np.zeros((len(ids), table.shape[1]), np.float32)
    return np.asarray(np.einsum("nkd,nk->nd", table[ids], share), np.float32)


@dataclass(frozen=True, eq=False)
class OwnWords:
    """A table of words; empty in the model that ships."""

    words: tuple[str, ...]
    table: Float32  # [words, dim]

    @staticmethod
    def of(checkpoint: ReelCheckpoint) -> OwnWords:
        """The table of a checkpoint."""
        words = tuple(str(word) for word in checkpoint.card.get(LIST, ()))
        table = checkpoint.tower.get(TABLE, np.zeros((0, 0), np.float32))
        if len(words) != len(table):
            raise WeightsCorrupt(
                f"the model's table of words has {len(table)} rows for {len(words)} words; tune it again"
            )
        return OwnWords(words, table)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def add(self, texts: Sequence[str]) -> Float32 | None:
        """`[texts, dim]`, or None where there is no table."""
        if not self.words:
            return None
        ids = ids_of(texts, self._indices)
        return added(self.table, ids, shares(ids))
