"""The part of the default model that tuning changes: the last matrix of either side, and single words.

    text = unit(straight x + b + deep + words),   video = unit(out h + o)

x, deep and h come from the frozen rest of the model (`models/reel/tower.py`) and are worked out once. What is
learned is added to weights that are there already, so a tuned model is a file like the one that ships.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.models.reel.checkpoint import is_quantised
from wordreel.models.reel.own_words import TABLE, added
from wordreel.runtime.quantise import dequantise, quantise
from wordreel.types import Float32, Int64

NAMES = {
    "straight": "caption.straight.weight",
    "straight_bias": "caption.straight.bias",
    "out": "out.weight",
    "out_bias": "out.bias",
    "words": TABLE,
}


@dataclass(frozen=True, eq=False)
class Heads:
    """`straight [dim, 384]`, `out [dim, dim]`, their biases `[dim]`, `words [words, dim]`."""

    straight: Float32
    straight_bias: Float32
    out: Float32
    out_bias: Float32
    words: Float32

    @staticmethod
    def of(tower: Mapping[str, Float32], words: int) -> Heads:
        """Those of a model that has no words of its own yet."""
        arrays = {field: tower[name] for field, name in NAMES.items() if field != "words"}
        return Heads(**arrays, words=np.zeros((words, len(tower["out.bias"])), np.float32))

    def arrays(self) -> dict[str, Float32]:
        return {field: getattr(self, field) for field in NAMES}

    def into(self, tower: Mapping[str, Float32]) -> dict[str, Float32]:
        """The tower with these in their places."""
        return {**tower, **{name: getattr(self, field) for field, name in NAMES.items()}}

    def rounded(self) -> Heads:
        """As the file that ships has them, so that what is judged is what is stored."""
        return Heads(
            **{
                name: dequantise(*quantise(array))
                if is_quantised(array)
                else array.astype(np.float16).astype(np.float32)
                for name, array in self.arrays().items()
            }
        )


@dataclass(frozen=True, eq=False)
class TextInputs:
    """What the heads read of some texts, and the vectors of their other rows `[texts, experts − 1, dim]`."""

    x: Float32  # [texts, 384]
    deep: Float32  # [texts, dim]
    words: Int64  # [texts, MOST] positions in the table, -1 for none
    share: Float32  # [texts, MOST]
    others: Float32

    def __len__(self) -> int:
        return len(self.x)

    def at(self, rows: Int64) -> TextInputs:
        return TextInputs(
            self.x[rows], self.deep[rows], self.words[rows], self.share[rows], self.others[rows]
        )


def between(start: Heads, end: Heads, strength: float) -> Heads:
    """`start + strength · (end − start)` (Wortsman et al. 2022, robust fine-tuning by interpolation)."""
    if strength == 0:
        return start
    far = end.arrays()
    arrays = {name: old + np.float32(strength) * (far[name] - old) for name, old in start.arrays().items()}
    return Heads(**arrays)


def mean(several: Sequence[Heads]) -> Heads:
    """The mean of heads that were learned from the same start."""
    arrays: dict[str, Float32] = {}
    for name in NAMES:
        total = np.sum([getattr(one, name) for one in several], axis=0, dtype=np.float64)
        arrays[name] = np.asarray(total / len(several), np.float32)
    return Heads(**arrays)


def unnormalised(heads: Heads, texts: TextInputs) -> Float32:
    """Text vectors `[texts, dim]` before they are normalised."""
    rows = texts.x @ heads.straight.T + heads.straight_bias + texts.deep
    return np.asarray(rows + added(heads.words, texts.words, texts.share), np.float32)


def text_vectors(heads: Heads, texts: TextInputs) -> Float32:
    return normalise(unnormalised(heads, texts))[0]


def video_vectors(heads: Heads, read: Float32) -> Float32:
    """`[items, dim]` of what the tower has read `[items, dim]`."""
    return normalise(read @ heads.out.T + heads.out_bias)[0]


def normalise(rows: Float32) -> tuple[Float32, Float32]:
    """Rows of unit length, and the lengths they had `[rows, 1]`."""
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(rows / lengths, np.float32), np.asarray(lengths, np.float32)
