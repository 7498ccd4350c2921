"""Zero-shot search with a joint picture-text model: CLIP4Clip's mean pooling (Luo et al. 2021), untrained.

Row 0, `seen`, compares the text's embedding t with the mean of the clip's frame embeddings f:

    v = unit(mean unit(f)),   s = GAIN · (⟨t, v⟩ − level)

Cosines of such models fill a narrow band: between pictures and unrelated words they lie around `level`, and
related words are little more than a tenth above. Shift and gain bring row 0 to the scale of the other rows
and of the bonus for spoken words, and a picture without sound or motion no longer gains by what it lacks.
Neither changes the ranking of clips that have the same experts. They live in the vectors, so that s stays one
inner product of unit video rows:

    video [√(1 − c²) v, c]      text [GAIN / √(1 − c²) t, −GAIN · level / c]

The other rows are those of the default model: words said, words shown and sound, padded with zeros.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np

from wordreel.backbones.backbone import Backbone
from wordreel.backbones.config import Family
from wordreel.models.base import EmbeddedClip, Evidence, Explanation, Model
from wordreel.models.joint.model import ROW
from wordreel.models.joint.other_rows import LINES, ROWS, OtherRows
from wordreel.models.joint.text_tower import DIM, TextTower
from wordreel.models.pooling import overlap, rows_in, unit
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track

VERSION = 2  # raise it when any embedding would change
WEIGHTS = MappingProxyType({ROW: 1.0, "speech": 0.6, "ocr": 0.2, "sound": 0.2})
"""How much each row counts. Row 0 is on another scale than that of the default model (see `GAIN`)."""

LEVELS: Mapping[Family, float] = MappingProxyType({"clip": 0.17, "siglip": 0.0})
"""The cosine of unrelated words and pictures. Softmax training leaves it anywhere (the modality gap);
SigLIP's bias makes it about zero."""

GAIN = 3.0  # related words then score about 0.4
CONSTANT = 0.1  # c, the last coordinate of row 0


class ZeroShot(Model):
    """A backbone without training, and the other rows of the default model."""

    experts = tuple(WEIGHTS)

    def __init__(
        self,
        store: WeightStore,
        backbone: Backbone,
        expert_fingerprint: str,
        weights: Mapping[str, float] = WEIGHTS,
    ) -> None:
        """`expert_fingerprint` is that of the expert that embeds frames with the backbone."""
        self.name = self.backbone = backbone.config.name
        self.dim = max(backbone.config.vector_dim + 1, DIM)
        self.expert_weights: tuple[float, ...] = tuple(float(weights[row]) for row in self.experts)
        self.track_experts = (self.backbone, *self.experts[1:])
        self.track_fingerprints = {self.backbone: expert_fingerprint}
        self._backbone = backbone
        self._tower = TextTower(store.root)
        self._others = OtherRows(self._tower, store)
        self._level = LEVELS[backbone.config.family]

    @cached_property
    def fingerprint(self) -> str:
        """Return the identity of the weights and the way of computing."""
        parts = [self.name, str(VERSION), repr((self.expert_weights, self._level, GAIN, CONSTANT))]
        parts += [*self.track_fingerprints.values(), self._backbone.fingerprint]
        parts += [self._tower.fingerprint, self._others.fingerprint]
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """Embed clips of one video from its tracks.

        Row 0 is the mean of unit frame embeddings, weighted by the time frames share with the clip; of a
        fine-tuned backbone, what its head makes of the frames.
        """
        vectors = np.zeros((len(clips), len(self.experts), self.dim), np.float32)
        available = np.zeros(vectors.shape[:2], bool)
        vectors[:, 1:, :DIM], available[:, 1:] = self._others.embed(tracks, clips)
        for number, vector in self._clip_vectors(tracks, clips).items():
            vectors[number, 0], available[number, 0] = self._video_row(vector), True
        return vectors, available

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        """Encode texts as queries."""
        weights = np.array(self.expert_weights, np.float32)
        encoded = unit(self._backbone.texts(list(texts)))
        queries = []
        for text, row, sentence in zip(texts, encoded, self._tower.encode(texts), strict=True):
            vectors = np.zeros((len(self.experts), self.dim), np.float32)
            vectors[0], vectors[1:, :DIM] = self._text_row(row), sentence
            queries.append(QueryEmbedding(vectors, weights, text))
        return queries

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        """Explain one clip."""
        vectors, _ = self.embed(tracks, [clip])
        return self.explain_all(query, self.evidence([EmbeddedClip(tracks, clip, vectors[0])]))[0]

    def evidence(self, clips: Sequence[EmbeddedClip]) -> list[Evidence]:
        """Return the frames and lines of each clip, and its vectors of the other rows."""
        return [
            Evidence(
                one.clip,
                rows_in(one.tracks, (self.backbone, *LINES), one.clip),
                {row: v[:DIM] for row, v in zip(ROWS, one.vectors[1:], strict=True) if v.any()},
            )
            for one in clips
        ]

    def explain_all(self, query: QueryEmbedding, evidence: Sequence[Evidence]) -> list[Explanation]:
        """Return the frame that fits the words best, and what the other rows have."""
        sentence, words = query.vectors[1, :DIM], query.vectors[0, : self._backbone.config.dim]
        return [
            {**self._others.explain(sentence, one), **self._best_frame(words, one.tracks, one.clip)}
            for one in evidence
        ]

    def compare(
        self, tracks: Mapping[str, Track], clip: Clip, other_tracks: Mapping[str, Track], other_clip: Clip
    ) -> Explanation:
        """Return the frame of the other clip that is most like this one, and its nearest lines."""
        common = self._others.compare(tracks, clip, other_tracks, other_clip)
        mean = self._mean(tracks, clip)
        return common if mean is None else {**common, **self._best_frame(mean, other_tracks, other_clip)}

    def _clip_vectors(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> dict[int, Float32]:
        """Return the unit vector of each clip that has frames, by its number."""
        if self._backbone.head is None or self.backbone not in tracks:
            means = ((number, self._mean(tracks, clip)) for number, clip in enumerate(clips))
            return {number: mean for number, mean in means if mean is not None}
        track = tracks[self.backbone]
        frames = {
            number: track.values[shares > 0]
            for number, clip in enumerate(clips)
            if (shares := overlap(track.times, clip)).any()
        }
        return dict(zip(frames, self._backbone.head(list(frames.values())), strict=True)) if frames else {}

    def _mean(self, tracks: Mapping[str, Track], clip: Clip) -> Float32 | None:
        """`[dim]` unit mean of a clip's frames; None where it has none."""
        if self.backbone not in tracks:
            return None
        shares = overlap(tracks[self.backbone].times, clip)
        return unit(shares @ unit(tracks[self.backbone].values)) if shares.any() else None

    def _best_frame(self, row: Float32, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        if self.backbone not in tracks:
            return {}
        track = tracks[self.backbone]
        shares = overlap(track.times, clip)
        if not shares.any():
            return {}
        if clip.end <= clip.start:  # a still picture
            return {ROW: ("the picture", None)}
        best = int(np.argmax(np.where(shares > 0, unit(track.values) @ row, -np.inf)))
        return {ROW: ("the best frame", (float(track.times[best, 0]), float(track.times[best, 1])))}

    def _video_row(self, mean: Float32) -> Float32:
        return self._row(np.float32(np.sqrt(1 - CONSTANT**2)) * mean, CONSTANT)

    def _text_row(self, text: Float32) -> Float32:
        scale = np.float32(GAIN / np.sqrt(1 - CONSTANT**2))
        return self._row(scale * text, -GAIN * self._level / CONSTANT)

    def _row(self, head: Float32, last: float) -> Float32:
        row = np.zeros(self.dim, np.float32)
        row[: len(head)], row[len(head)] = head, last
        return row
