"""The rows beside `seen`: what is said, what is written on screen, and the places a sound is of.

All are vectors of the text tower, so that a query is encoded once for every row:

    speech, ocr    unit(Σ seconds · tower(line) / Σ seconds − m)     over the lines of the clip
    sound          unit(Σ p(place) · tower(place) − m)               over the likeliest places

m is the mean vector of everyday concepts: two texts of nothing in common have a cosine of about 0.2, a text
and a picture of about 0. Without m, a sound that fits nothing would rank above such pictures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from wordreel.experts import registry
from wordreel.experts.sound import CARD as SOUND_CARD
from wordreel.models.base import Evidence, Explanation
from wordreel.models.joint.concepts import read_names
from wordreel.models.joint.text_tower import DIM, TextTower
from wordreel.models.pooling import clip_mean, shares, unit
from wordreel.runtime.mapped_arrays import cached_arrays
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Clip, Float32, Float64, Track

LINES = ("speech", "ocr")
SOUND = "sound"
ROWS = (*LINES, SOUND)
PLACES = 5  # of a sound
EVERY = 8  # one in so many concepts is enough for their mean
LONGEST = 24  # lines of a clip among which the nearest to the words is looked for
QUOTED = 0.35  # cosine of a line with the words from which on it is quoted
HEARD = 0.2  # cosine of a place with the words from which on it is named


class OtherRows:
    """Embeds the lines and the sound of clips, and says which of them fit a query."""

    def __init__(self, tower: TextTower, store: WeightStore) -> None:
        self._tower, self._store = tower, store

    @cached_property
    def fingerprint(self) -> str:
        """Identifies what the vectors depend on beside the tower."""
        names = hashlib.sha256("\n".join(read_names()).encode()).hexdigest()
        return repr((PLACES, EVERY, names, SOUND_CARD.version))

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """Return `vectors [clips, rows, 512]` and `available [clips, rows]`, in the order of `ROWS`."""
        vectors = np.zeros((len(clips), len(ROWS), DIM), np.float32)
        available = np.zeros(vectors.shape[:2], bool)
        for row, expert in enumerate(ROWS):
            if expert not in tracks:
                continue
            rows, times = self._rows(tracks[expert], expert)
            for number, clip in enumerate(clips):
                mean = clip_mean(rows, times, clip) if len(rows) else None
                if mean is None:
                    continue
                vector = mean if expert in LINES else self._place_vector(mean)
                vectors[number, row] = unit(vector - self._mean)
                available[number, row] = True
        return vectors, available

    def explain(self, sentence: Float32, evidence: Evidence) -> Explanation:
        """Return the line nearest to the words, and the place, where they are near."""
        explanation: Explanation = {}
        for expert in LINES:
            line = self._best_line(sentence, evidence.tracks.get(expert), evidence.clip)
            if line is not None:
                explanation[expert] = line
        if SOUND in evidence.vectors:
            names = registry.recogniser(SOUND, self._store).names
            heard = (self._places - self._mean) @ evidence.vectors[SOUND]
            likely = np.argsort(-heard)[:PLACES]
            fits = self._places[likely] @ sentence
            if fits.max() >= HEARD:
                explanation[SOUND] = (names[int(likely[fits.argmax()])], None)
        return explanation

    def compare(
        self, tracks: Mapping[str, Track], clip: Clip, other_tracks: Mapping[str, Track], other_clip: Clip
    ) -> Explanation:
        """Return the lines of another clip that are nearest to what this one says and shows."""
        common: Explanation = {}
        for expert in LINES:
            if expert in tracks:
                mean = clip_mean(*self._rows(tracks[expert], expert), clip)
                line = None if mean is None else self._best_line(mean, other_tracks.get(expert), other_clip)
                if line is not None:
                    common[expert] = line
        return common

    def _best_line(
        self, sentence: Float32, track: Track | None, clip: Clip
    ) -> tuple[str, tuple[float, float]] | None:
        if track is None:
            return None
        there = shares(line_times(track), clip) > 0
        lines = [line for line, shown in zip(track.words, there.tolist(), strict=True) if shown]
        if not lines or len(lines) > LONGEST:
            return None
        fits = self._tower.encode([line.text for line in lines]) @ sentence
        best = lines[int(fits.argmax())]
        return (f"“{best.text}”", (best.start, best.end)) if fits.max() >= QUOTED else None

    def _rows(self, track: Track, expert: str) -> tuple[Float32, Float64]:
        """Return the vectors of a track's lines, or the log-probabilities of its places, and their times."""
        if expert in LINES:
            return self._tower.encode([line.text for line in track.words]), line_times(track)
        labels = registry.recogniser(SOUND, self._store).labels(track)
        return labels.scores, labels.times

    def _place_vector(self, scores: Float32) -> Float32:
        likely = np.argsort(-scores)[:PLACES]
        chances = np.exp(scores[likely] - scores[likely].max())
        return np.asarray(chances / chances.sum() @ self._places[likely], np.float32)

    @cached_property
    def _mean(self) -> Float32:
        """Return the mean vector of the concepts, `[512]`."""
        texts = read_names()[::EVERY]
        key = f"mean-{self._tower.fingerprint}"
        made = cached_arrays(self._store.root, key, lambda: {"mean": self._tower.encode(texts).mean(axis=0)})
        return made["mean"]

    @cached_property
    def _places(self) -> Float32:
        names = registry.recogniser(SOUND, self._store).names
        key = f"places-{self._tower.fingerprint}"
        made = cached_arrays(self._store.root, key, lambda: {"vectors": self._tower.encode(names)})
        return made["vectors"]


def line_times(track: Track) -> Float64:
    """Return the times `[lines, 2]` of a track's lines."""
    return np.array([(line.start, line.end) for line in track.words], np.float64).reshape(-1, 2)
