"""The default model: pictures, speech, on-screen text and sound in one space, found by one text tower."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from wordreel.models.base import CheckpointModel, EmbeddedClip, Evidence, Explanation
from wordreel.models.joint.adapter import FILE, read_adapter
from wordreel.models.joint.concepts import Concepts, read_concepts
from wordreel.models.joint.other_rows import LINES, ROWS, OtherRows
from wordreel.models.joint.text_tower import DIM, FOLDER, TextTower
from wordreel.models.pooling import clip_mean, rows_in, unit
from wordreel.runtime.stamped_hash import STAMPS
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Calibration, Clip, Float32, QueryEmbedding, Track

NAME = "joint"
TUNED = "tuned"  # key of the card: the name of a model that was tuned from this one
EYES = "clip"  # the expert whose frames the first row reads
ROW = "seen"
VERSION = 1  # raise it when any embedding would change
WEIGHTS = MappingProxyType({ROW: 1.0, "speech": 0.05, "ocr": 0.05, "sound": 0.05})
"""How much each row counts, chosen by `studies/row_weights.py`."""


class Joint(CheckpointModel):
    """The model that comes with wordreel, or one tuned from it."""

    name: str = NAME
    experts = (ROW, *ROWS)
    dim = DIM
    track_experts = (EYES, *ROWS)
    eyes, former_eyes = EYES, "appearance"
    expert_weights = tuple(WEIGHTS[row] for row in experts)
    calibration = Calibration(height=0.792, crowd=0.4, growth=0.803, likeness=8.083, toll=6.037)

    def __init__(self, store: WeightStore, path: Path = FILE, tower: Path = FOLDER) -> None:
        """`path` is the adapter's file, `tower` the folder of the text tower."""
        self.folder = path.parent
        self.adapter = read_adapter(path, store.root / STAMPS)
        self.name = str(self.adapter.card[TUNED]) if TUNED in self.adapter.card else NAME
        self.tower = TextTower(store.root, tower)
        self._others = OtherRows(self.tower, store)

    @cached_property
    def fingerprint(self) -> str:
        """Return the identity of the weights and the way of computing."""
        parts = [self.name, str(VERSION), repr(self.expert_weights), self.tower.fingerprint]
        parts += [self.adapter.digest, self._others.fingerprint]
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    @property
    def facts(self) -> Mapping[str, Any]:
        """The model card."""
        return {**self.adapter.card, "name": self.name}

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """Embed clips of one video from its tracks."""
        vectors = np.zeros((len(clips), len(self.experts), DIM), np.float32)
        available = np.zeros(vectors.shape[:2], bool)
        vectors[:, 1:], available[:, 1:] = self._others.embed(tracks, clips)
        if (track := tracks.get(EYES)) is not None:
            frames = unit(track.values)
            for number, clip in enumerate(clips):
                if (mean := clip_mean(frames, track.times, clip)) is not None:
                    vectors[number, 0], available[number, 0] = self.adapter(mean), True
        return vectors, available

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        """Encode texts as queries."""
        weights = np.array(self.expert_weights, np.float32)
        shape = (len(self.experts), DIM)
        return [
            QueryEmbedding(np.broadcast_to(row, shape).copy(), weights, text)
            for text, row in zip(texts, self.tower.encode(texts), strict=True)
        ]

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        """Explain one clip."""
        vectors, _ = self.embed(tracks, [clip])
        return self.explain_all(query, self.evidence([EmbeddedClip(tracks, clip, vectors[0])]))[0]

    def evidence(self, clips: Sequence[EmbeddedClip]) -> list[Evidence]:
        """Return the frames and lines of each clip, and its vectors by row."""
        return [
            Evidence(
                one.clip,
                rows_in(one.tracks, (EYES, *LINES), one.clip),
                {row: v for row, v in zip(self.experts, one.vectors, strict=True) if v.any()},
            )
            for one in clips
        ]

    def explain_all(self, query: QueryEmbedding, evidence: Sequence[Evidence]) -> list[Explanation]:
        """Return the concepts that stand out in each clip, its best frame, and what the other rows have."""
        sentence = query.vectors[0]
        explanations = [self._others.explain(sentence, one) for one in evidence]
        seen = [n for n, one in enumerate(evidence) if ROW in one.vectors and EYES in one.tracks]
        if seen:
            shown = self.concepts.shown(np.stack([evidence[number].vectors[ROW] for number in seen]))
            for number, row in zip(seen, shown, strict=True):
                names = self.concepts.fitting(sentence, row)
                explanations[number][ROW] = self._named(names, sentence, evidence[number])
        return explanations

    def compare(
        self, tracks: Mapping[str, Track], clip: Clip, other_tracks: Mapping[str, Track], other_clip: Clip
    ) -> Explanation:
        """Return the concepts that both clips show, the frame most like this clip, and nearest lines."""
        common = self._others.compare(tracks, clip, other_tracks, other_clip)
        one, other = (self._seen(*own) for own in ((tracks, clip), (other_tracks, other_clip)))
        if one is None or other is None:
            return common
        shown = self.concepts.shown(np.stack([one, other]))
        evidence = Evidence(other_clip, rows_in(other_tracks, (EYES,), other_clip))
        return {**common, ROW: self._named(self.concepts.common(*shown), one, evidence)}

    def standing_out(self, track: Track) -> list[str]:
        """Return the names of what a track of the eyes shows as a whole."""
        (shown,) = self.concepts.shown(self.adapter(unit(track.values).mean(axis=0)[None]))
        return self.concepts.common(shown, shown)

    @cached_property
    def concepts(self) -> Concepts:
        """Return the vocabulary of reasons, encoded once for a text tower."""
        return read_concepts(self.tower, self.adapter, self.adapter.digest)

    def _seen(self, tracks: Mapping[str, Track], clip: Clip) -> Float32 | None:
        vectors, available = self.embed({name: tracks[name] for name in tracks if name == EYES}, [clip])
        return vectors[0, 0] if available[0, 0] else None

    def _named(
        self, names: Sequence[str], vector: Float32, evidence: Evidence
    ) -> tuple[str, tuple[float, float] | None]:
        """Return what a clip shows, and when the frame nearest to a vector is; of a picture no time."""
        if evidence.clip.end <= evidence.clip.start:
            return ", ".join(names) or "the picture", None
        track = evidence.tracks[EYES]
        best = int(np.argmax(self.adapter(track.values) @ vector))
        return ", ".join(names) or "the best frame", (
            float(track.times[best, 0]),
            float(track.times[best, 1]),
        )
