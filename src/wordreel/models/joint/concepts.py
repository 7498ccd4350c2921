"""What a moment shows, in words: the concepts of a vocabulary that stand out in it.

    shown(c, v) = (⟨c, v⟩ − mean of ⟨c, u⟩) / deviation of ⟨c, u⟩     over reference pictures u

A concept that is near to every picture names none of them; relative to its own mean it does not win. The
vocabulary (`concepts.txt`) is what people write in captions, made by `tools/concepts.py`; the text tower
encodes it once. `reference.npy` holds embeddings of pictures that came before the adapter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from wordreel.models.joint.text_tower import FOLDER, TextTower
from wordreel.runtime.mapped_arrays import cached_arrays
from wordreel.types import Float32, Int64

VOCABULARY, REFERENCE = "concepts.txt", "reference.npy"
SHOWN = 3.0  # deviations above a concept's mean from which on a moment shows it
FITS = 0.5  # cosine of a concept with the words from which on it fits them
NAMED = 3  # concepts in a reason
CANDIDATES = 12  # that stand out most


@dataclass(frozen=True, eq=False)
class Concepts:
    """`vectors [concepts, 512]`, and the mean and deviation of their cosines with reference pictures."""

    names: tuple[str, ...]
    vectors: Float32
    mean: Float32
    deviation: Float32

    def shown(self, moments: Float32) -> Float32:
        """Return how much each of `moments [n, 512]` shows each concept, in deviations: `[n, concepts]`."""
        return np.asarray((moments @ self.vectors.T - self.mean) / self.deviation, np.float32)

    def fitting(self, sentence: Float32, shown: Float32) -> list[str]:
        """Return the names of what a moment shows, what fits the words first."""
        candidates = _strongest(shown)
        fits = self.vectors[candidates] @ sentence
        first = [
            int(c) for c in candidates[np.argsort(-fits, kind="stable")] if c in candidates[fits >= FITS]
        ]
        return self._distinct([*first, *(c for c in candidates.tolist() if c not in first)])

    def common(self, one: Float32, other: Float32) -> list[str]:
        """Return the names of what two moments both show."""
        return self._distinct(_strongest(np.minimum(one, other)).tolist())

    def _distinct(self, candidates: Sequence[int]) -> list[str]:
        """Return the first few names of which none repeats a word of another."""
        names: list[str] = []
        known: set[str] = set()
        for candidate in candidates:
            words = {_stem(word) for word in self.names[candidate].split() if len(word) > 3}
            if not words & known:
                names.append(self.names[candidate])
                known |= words
            if len(names) == NAMED:
                break
        return names


def _strongest(shown: Float32) -> Int64:
    order = np.argsort(-shown)[:CANDIDATES]
    return np.asarray(order[shown[order] >= SHOWN], np.int64)


def _stem(word: str) -> str:
    """Return a word without the endings that captions vary."""
    for ending in ("ing", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word[: -len(ending)]
    return word


def read_names() -> tuple[str, ...]:
    """Return the vocabulary."""
    return tuple((files("wordreel.models.joint") / VOCABULARY).read_text(encoding="utf-8").splitlines())


def read_concepts(tower: TextTower, adapt: Callable[[Float32], Float32], adapter: str) -> Concepts:
    """Return the vocabulary in the space of a tower and an adapter; `adapter` identifies the latter.

    It is computed once for each and stored beside the weights.
    """
    names = read_names()
    reference = (FOLDER / REFERENCE).read_bytes()
    parts = [tower.fingerprint, adapter, *names, hashlib.sha256(reference).hexdigest()]
    key = f"concepts-{hashlib.sha256(chr(31).join(parts).encode()).hexdigest()[:16]}"

    def compute() -> dict[str, Float32]:
        vectors = tower.encode(names)
        cosines = vectors @ adapt(np.load(FOLDER / REFERENCE).astype(np.float32)).T
        return {"vectors": vectors, "mean": cosines.mean(axis=1), "deviation": cosines.std(axis=1)}

    made = cached_arrays(tower.root, key, compute)
    return Concepts(names, made["vectors"], made["mean"], made["deviation"])
