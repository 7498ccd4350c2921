"""The rows beside `seen`: what is said, what is written on screen, and the places a sound is of.

All are vectors of the text tower, so that a query is encoded once for every row:

    speech, ocr    unit(Σ seconds · tower(line))       over the lines of the clip
    sound          unit(Σ p(place) · tower(place))     over the likeliest places
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from wordreel.experts import registry
from wordreel.experts.sound import CARD as SOUND_CARD
from wordreel.models.base import Evidence, Explanation
from wordreel.models.joint.text_tower import DIM, TextTower
from wordreel.models.pooling import clip_mean, shares, unit
from wordreel.runtime.array_cache import cached_arrays
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Clip, Float32, Float64, Track

LINES = ("speech", "ocr")
SOUND = "sound"
ROWS = (*LINES, SOUND)
PLACES = 5  # of a sound
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
        return repr((PLACES, SOUND_CARD.version))

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
                vectors[number, row] = unit(mean if expert in LINES else self._place_vector(mean))
                available[number, row] = True
        return vectors, available

    def explain(self, sentence: Float32, evidence: Evidence) -> Explanation:
        """Return the line nearest to the words, and the place, where they are near."""
        explanation: Explanation = {}
        for expert in LINES:
            if (line := self._best_line(sentence, evidence, expert)) is not None:
                explanation[expert] = line
        if SOUND in evidence.vectors:
            names = registry.recogniser(SOUND, self._store).names
            heard = self._places @ evidence.vectors[SOUND]
            likely = np.argsort(-heard)[:PLACES]
            fits = self._places[likely] @ sentence
            if fits.max() >= HEARD:
                explanation[SOUND] = (names[int(likely[fits.argmax()])], None)
        return explanation

    def _best_line(
        self, sentence: Float32, evidence: Evidence, expert: str
    ) -> tuple[str, tuple[float, float]] | None:
        track = evidence.tracks.get(expert)
        if track is None:
            return None
        there = shares(line_times(track), evidence.clip) > 0
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
    def _places(self) -> Float32:
        names = registry.recogniser(SOUND, self._store).names
        key = f"places-{self._tower.fingerprint}"
        made = cached_arrays(self._store.root, key, lambda: {"vectors": self._tower.encode(names)})
        return made["vectors"]


def line_times(track: Track) -> Float64:
    """Return the times `[lines, 2]` of a track's lines."""
    return np.array([(line.start, line.end) for line in track.words], np.float64).reshape(-1, 2)
