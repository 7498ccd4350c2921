"""From stored tracks to a model's input: which rows of a track a clip gets, and how a batch is padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from wordreel.lab.models.batch import ExpertFeatures
from wordreel.lab.models.config import ExpertConfig, MMTConfig, ModelConfig
from wordreel.models.joint.other_rows import LINES, line_times
from wordreel.models.joint.text_tower import TextTower
from wordreel.models.pooling import overlap
from wordreel.types import Clip, Float32, Track


class ExpertRows:
    """One expert's rows for one clip: `values [n, dim]` and the rows' middles `times [n]`, NaN if unknown."""

    __slots__ = ("pooled", "times", "values")

    def __init__(
        self, values: Float32, times: NDArray[np.floating] | None = None, pooled: Float32 | None = None
    ) -> None:
        self.values = values
        self.times = np.full(len(values), np.nan) if times is None else times
        self.pooled = pooled


def clip_rows(track: Track, clip: Clip) -> ExpertRows | None:
    """Return the rows that share time with the clip, timed from its start; None if there are none.

    >>> track = Track(np.eye(2, dtype=np.float32), np.array([[0.0, 2.0], [2.0, 4.0]]))
    >>> clip_rows(track, Clip("", 2.5, 4.0)).times.tolist()
    [0.5]
    """
    shared = overlap(track.times, clip) > 0
    if not shared.any():
        return None
    middles = track.times[shared].mean(axis=1) - clip.start
    return ExpertRows(track.values[shared], np.maximum(middles, 0))


def with_line_vectors(expert: str, track: Track, tower: TextTower) -> Track:
    """Return the track of an expert that recognises text with a vector for each line, any other as it is."""
    if expert not in LINES or not track.words:
        return track
    return Track(tower.encode([line.text for line in track.words]), line_times(track), track.words)


def choose_rows(count: int, most: int, chance: np.random.Generator | None = None) -> NDArray[np.intp]:
    """Return which of `count` rows are kept when only `most` fit, in order.

    At random with a generator (training); without, always the same ones for a count, spread over all of them.
    """
    if not most or count <= most:
        return np.arange(count)
    if chance is None:
        return np.sort(np.random.RandomState(0).choice(count, most, replace=False))
    return np.sort(chance.choice(count, most, replace=False))


def collate(
    videos: Sequence[Mapping[str, ExpertRows | None]],
    config: ModelConfig,
    chance: np.random.Generator | None = None,
    fixed: bool = False,
) -> dict[str, ExpertFeatures]:
    """Return a batch of videos (expert → rows) as padded tensors, rows cut to each expert's `max_tokens`.

    MMT draws the rows it keeps and pools over all of them first; the others keep the first ones. With `fixed`
    every expert is padded to its `max_tokens`, so that all batches have one shape.
    """
    return {expert.name: _expert(videos, expert, config, chance, fixed) for expert in config.experts}


def _expert(
    videos: Sequence[Mapping[str, ExpertRows | None]],
    expert: ExpertConfig,
    config: ModelConfig,
    chance: np.random.Generator | None,
    fixed: bool,
) -> ExpertFeatures:
    tracks = [video.get(expert.name) for video in videos]
    longest = max([1, *(len(rows.values) for rows in tracks if rows is not None)])
    if expert.max_tokens and (fixed or longest > expert.max_tokens):
        longest = expert.max_tokens
    values = np.zeros((len(videos), longest, expert.dim), np.float32)
    mask = np.zeros(values.shape[:2], bool)
    times = np.full(values.shape[:2], np.nan, np.float32)
    pooled = np.zeros((len(videos), expert.dim), np.float32)
    sampled = isinstance(config, MMTConfig)
    for number, rows in enumerate(tracks):
        if rows is None or not len(rows.values):
            continue
        count = len(rows.values)
        chosen = choose_rows(count, expert.max_tokens, chance) if sampled else np.arange(min(count, longest))
        values[number, : len(chosen)] = rows.values[chosen]
        times[number, : len(chosen)] = rows.times[chosen]
        mask[number, : len(chosen)] = True
        if rows.pooled is not None:
            pooled[number] = rows.pooled
        elif sampled:
            mean = isinstance(config, MMTConfig) and config.aggregate == "mean"
            pooled[number] = rows.values.mean(axis=0) if mean else rows.values.max(axis=0)
    return ExpertFeatures(
        torch.from_numpy(values),
        torch.from_numpy(mask),
        torch.from_numpy(times),
        torch.from_numpy(pooled) if sampled else None,
    )
