"""The contract between search and every joint embedding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from wordreel.types import Bool, Calibration, Clip, Float32, QueryEmbedding, Track

Explanation = dict[str, tuple[str, tuple[float, float] | None]]
"""Expert → what it recognised, and when (seconds), if that is known."""

OBJECT_BYTES = 1024  # of an `Evidence` beside its arrays, about


@dataclass(frozen=True, eq=False)
class EmbeddedClip:
    """A clip with the tracks of its video and its embedding."""

    tracks: Mapping[str, Track]
    clip: Clip
    vectors: Float32  # [experts, dim], zeros where an expert is absent


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a clip is explained with, whatever the query: searchers cache it, `nbytes` at a time.

    Attributes:
        clip: The clip.
        tracks: What explanations read of its tracks.
        vectors: The vectors of its embedding that explanations read, by row.
    """

    clip: Clip
    tracks: Mapping[str, Track] = field(default_factory=dict)
    vectors: Mapping[str, Float32] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Return the memory that it takes, about."""
        rows = sum(track.values.nbytes + track.times.nbytes for track in self.tracks.values())
        return rows + sum(vector.nbytes for vector in self.vectors.values()) + OBJECT_BYTES


class Model(ABC):
    """A joint embedding: maps stored tracks and text into one space of `[experts, dim]`.

    Everything search may ask of a model is declared here. What only some models can do has a default that
    says so: `expert_weights` and `calibration` are None, `explain` and `compare` return an empty mapping.

    Attributes:
        name: What users call the model.
        experts: The rows of every embedding, in order.
        dim: The length of a row.
        track_experts: The experts whose tracks `embed` reads; more than `experts` where a row joins several.
        track_fingerprints: Of experts whose tracks must be by exactly one version, its fingerprint; tracks by
            another version count as absent.
        eyes: The expert whose tracks the pictures are found by; empty if no single one matters so much.
        former_eyes: The expert that was the eyes of earlier versions.
        expert_weights: Mixture weights `[experts]` where they do not depend on the query, else None.
        calibration: What turns this model's scores into confidences; None means the general calibration.

    >>> class Brightness(Model):
    ...     name, experts, dim, track_experts, fingerprint = "brightness", ("light",), 1, ("light",), "1"
    ...
    ...     def embed(self, tracks, clips):
    ...         return np.ones((len(clips), 1, 1), np.float32), np.full((len(clips), 1), "light" in tracks)
    ...
    ...     def encode(self, texts):
    ...         row, weights = np.ones((1, 1), np.float32), np.ones(1, np.float32)
    ...         return [QueryEmbedding(row, weights, text) for text in texts]
    >>> Brightness().encode(["a bright room"])[0].vectors.shape
    (1, 1)
    >>> Brightness().calibration is None
    True
    """

    name: str
    experts: tuple[str, ...]
    dim: int
    track_experts: tuple[str, ...]
    track_fingerprints: Mapping[str, str] = MappingProxyType({})
    eyes: str = ""
    former_eyes: str = ""
    expert_weights: tuple[float, ...] | None = None
    calibration: Calibration | None = None

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies model, weights and preprocessing: it changes whenever any vector would."""

    @abstractmethod
    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """Embed clips of one video.

        Args:
            tracks: The video's tracks by expert; an expert that is not in the mapping is absent.
            clips: The clips to embed.

        Returns:
            `vectors [clips, experts, dim]` and `available [clips, experts]`.
        """

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        """Encode each text as one vector and one weight per expert."""

    def explain(self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip) -> Explanation:
        """Return what each expert recognised in a clip that fits the query; some may be silent."""
        return {}

    def evidence(self, clips: Sequence[EmbeddedClip]) -> list[Evidence]:
        """Return what `explain_all` reads of each clip: the part of explaining it that no query changes."""
        return [Evidence(one.clip, one.tracks) for one in clips]

    def explain_all(self, query: QueryEmbedding, evidence: Sequence[Evidence]) -> list[Explanation]:
        """Call `explain` for each clip of a page of hits, from its evidence."""
        return [self.explain(query, one.tracks, one.clip) for one in evidence]

    def compare(
        self, tracks: Mapping[str, Track], clip: Clip, other_tracks: Mapping[str, Track], other_clip: Clip
    ) -> Explanation:
        """Return what two clips of different videos have in common, by expert; times are the other's."""
        return {}


class CheckpointModel(Model):
    """A model loaded from a checkpoint folder, which a library can copy.

    Attributes:
        folder: The checkpoint folder.
        text_files: Files in the folder, relative to it, that `encode` needs beside the weights.
        external_text: What `encode` needs that is not in the folder; empty if there is nothing.
        track_dims: The size of each expert's features that has to be so; empty if any will do.
    """

    folder: Path
    text_files: tuple[str, ...] = ()
    external_text: str = ""
    track_dims: Mapping[str, int] = MappingProxyType({})

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """The checkpoint's description, as written to `model.json`."""


def mixture_weights(model: Model) -> Float32:
    """Return a model's fixed weights `[experts]`.

    They are 1 for every expert if the weights depend on the query.
    """
    if model.expert_weights is None:
        return np.ones(len(model.experts), np.float32)
    return np.asarray(model.expert_weights, np.float32)
