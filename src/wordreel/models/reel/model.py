"""The default joint embedding: a learned row, beside those that the bridge has without learning.

Row 0, `seen`, is the trained transformer over all experts; the other rows are the bridge's, which speak for
words that no training caption had, for speech and for text on the screen. How much each counts was chosen on
validation videos.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.experts.base import Recogniser
from wordreel.lab.models.registry import reel
from wordreel.models.base import CheckpointModel, EmbeddedClip, Evidence, Explanation
from wordreel.models.bridge import Bridge
from wordreel.models.reel.checkpoint import SHIPPED, load
from wordreel.models.reel.class_inputs import recognisers, with_class_inputs
from wordreel.models.reel.own_words import OwnWords
from wordreel.models.reel.runtime import ROW, embed_sentences, embed_videos
from wordreel.models.reel.segments import overlapping, scaled, segments
from wordreel.models.reel.text_encoder import text_encoder
from wordreel.runtime.sentences import SentenceEncoder
from wordreel.runtime.sessions import threads
from wordreel.runtime.stamped_hash import STAMPS, sha256_of
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Calibration, Clip, Float32, QueryEmbedding, Track
from wordreel.util.cores import cores

VERSION = 2  # raise it when any embedding would change
WEIGHTS = {ROW: 1.0, "appearance": 0.3, "motion": 0.5, "sound": 0.3, "speech": 0.3, "ocr": 0.2}
PICTURES = ("appearance", "motion")
"""The learned row speaks where it has one of these, or one that it was trained on alone."""

AT_ONCE = 256  # clips
FEW = 4  # texts, encoded by both sentence encoders at once


class Reel(CheckpointModel):
    """The model that comes with wordreel."""

    name: str = "reel"  # a tuned one has its own
    experts = tuple(WEIGHTS)
    dim = reel().dim
    expert_weights = tuple(WEIGHTS.values())
    calibration = Calibration(height=1.492, standing=0.0, crowd=0.4, growth=0.826, toll=4.193)
    track_experts = tuple(dict.fromkeys([*reel().names, *Bridge.experts]))
    outdated_tracks = Bridge.outdated_tracks

    def __init__(self, store: WeightStore, path: Path = SHIPPED) -> None:
        self.folder = path.parent
        self._store = store
        self.checkpoint = load(path, sha256_of(path, store.root / STAMPS) if path.exists() else None)
        self._bridge = Bridge(store)
        self.name = str(self.checkpoint.card.get("name", Reel.name))
        self._words = OwnWords.of(self.checkpoint)
        self._config = self.checkpoint.config

    @cached_property
    def fingerprint(self) -> str:
        parts = [self.name, str(VERSION), repr(WEIGHTS), self.checkpoint.digest, self._bridge.fingerprint]
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    @property
    def facts(self) -> dict[str, Any]:
        """The model card."""
        return {"name": self.name, **self.checkpoint.card}

    def sentences(self, texts: Sequence[str]) -> Float32:
        """`[texts, 384]`: its own sentence encoder."""
        return self._encoder.encode(list(texts))

    def others(self, texts: Sequence[str]) -> Float32:
        """`[texts, experts − 1, dim]`: the rows that were not learned."""
        return np.stack([known.vectors for known in self._bridge.encode(texts)])

    @cached_property
    def speaks_for(self) -> tuple[str, ...]:
        """The experts of which one is enough for the learned row."""
        run = self.checkpoint.card.get("training", {}).get("recipe", {}).get("run", {})
        return (*PICTURES, *run.get("alone", ()))

    def _speaks(self, tracks: Mapping[str, Track], clip: Clip) -> bool:
        """Whether the learned row speaks of a clip."""
        return any(name in tracks and overlapping(tracks[name], clip).any() for name in self.speaks_for)

    @cached_property
    def _recognisers(self) -> dict[str, Recogniser]:
        return recognisers(self._config.names, self._store)

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        return text_encoder(self._store, self.checkpoint)

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """Row 0 from all experts, the others as the bridge has them."""
        vectors = np.zeros((len(clips), len(self.experts), self.dim), np.float32)
        available = np.zeros(vectors.shape[:2], bool)
        vectors[:, 1:], available[:, 1:] = self._bridge.embed(tracks, clips)
        tokens = self.tokens(tracks, clips)
        for start in range(0, len(clips), AT_ONCE):
            span = slice(start, start + AT_ONCE)
            vectors[span, 0] = embed_videos(self.checkpoint.tower, self._config, tokens[span])
            available[span, 0] = [any(name in inputs for name in self.speaks_for) for inputs in tokens[span]]
        vectors[~available] = 0
        return vectors, available

    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        # Too little for a network to share among its threads: each of the two has a core.
        beside = len(texts) <= FEW and threads() > 1
        encode_others = partial(self._bridge.encode, texts)
        others = _pool().submit(encode_others).result if beside else encode_others
        sentences = self._encoder.encode(list(texts))
        learned = embed_sentences(self.checkpoint.tower, sentences, self._words.add(texts))
        return [self._joined(row, known) for row, known in zip(learned, others(), strict=True)]

    def _joined(self, learned: Float32, others: QueryEmbedding) -> QueryEmbedding:
        weights = np.array(list(WEIGHTS.values()), np.float32)
        return QueryEmbedding(np.concatenate([learned[None], others.vectors]), weights, others.text)

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        """What the bridge recognised; the learned row is explained with the labels of its inputs."""
        explanation = self._bridge.explain(query, tracks, clip)
        return _with_learned(explanation) if self._speaks(tracks, clip) else explanation

    def evidence(self, clips: Sequence[EmbeddedClip]) -> list[Evidence]:
        known = self._bridge.evidence([replace(one, vectors=one.vectors[1:]) for one in clips])
        return [
            replace(evidence, learned=self._speaks(one.tracks, one.clip))
            for evidence, one in zip(known, clips, strict=True)
        ]

    def explain_all(self, query: QueryEmbedding, evidence: Sequence[Evidence]) -> list[Explanation]:
        explained = self._bridge.explain_all(query, evidence)
        return [
            _with_learned(explanation) if one.learned else explanation
            for explanation, one in zip(explained, evidence, strict=True)
        ]

    def compare(
        self, tracks: Mapping[str, Track], clip: Clip, other_tracks: Mapping[str, Track], other_clip: Clip
    ) -> Explanation:
        """What two clips have in common, in the bridge's words."""
        common = self._bridge.compare(tracks, clip, other_tracks, other_clip)
        both = self._speaks(tracks, clip) and self._speaks(other_tracks, other_clip)
        return _with_learned(common) if both else common

    def tokens(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> list[dict[str, Float32]]:
        """What the learned row reads in each clip."""
        inputs = with_class_inputs(tracks, self._recognisers)
        return [self._clip_tokens(inputs, clip) for clip in clips]

    def _clip_tokens(self, inputs: Mapping[str, Track], clip: Clip) -> dict[str, Float32]:
        tokens, scale = {}, self.checkpoint.scale
        for expert in self._config.experts:
            name = expert.name
            rows = segments(inputs[name], clip, expert.max_tokens) if name in inputs else None
            if rows is not None:
                tokens[name] = scaled(rows, scale[f"{name}.mean"], scale[f"{name}.deviation"])
        return tokens


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "wordreel-encode")


def _with_learned(explanation: Explanation) -> Explanation:
    """Explain the learned row with the labels of the recognised motion and objects."""
    recognised = [explanation[expert][0] for expert in ("motion", "appearance") if expert in explanation]
    return {**explanation, ROW: (", ".join(recognised) or "the whole clip", None)}
