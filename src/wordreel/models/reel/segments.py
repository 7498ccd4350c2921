"""Tracks to tokens: the rows that overlap a clip, averaged over segments of time, on the training scale.

token = (sign(x) √|x| − mean) / deviation
"""

from __future__ import annotations

import numpy as np

from wordreel.types import Bool, Clip, Float32, Track


def segments(track: Track, clip: Clip, most: int) -> Float32 | None:
    """`[n ≤ most, dim]` means of the rows that overlap the clip; None if no row does."""
    rows = track.values[overlapping(track, clip)]
    return segment_means(rows, most) if len(rows) else None


def segment_means(rows: Float32, most: int) -> Float32:
    """`[min(n, most), dim]`: rows `[n, dim]` in order, cut into parts as equal as possible and averaged.

    >>> segment_means(np.array([[1.0], [3.0], [5.0]], np.float32), 2).tolist()
    [[2.0], [5.0]]
    """
    if len(rows) <= most:
        return rows.astype(np.float32)
    return np.stack([part.mean(axis=0) for part in np.array_split(rows, most)]).astype(np.float32)


def overlapping(track: Track, clip: Clip) -> Bool:
    """Which rows of a track overlap a clip: all, for a whole video."""
    if clip.whole:
        return np.ones(len(track), bool)
    return np.asarray((track.times[:, 0] < clip.end) & (track.times[:, 1] > clip.start))


def scaled(rows: Float32, mean: Float32, deviation: Float32) -> Float32:
    """Tokens on the scale the model was trained on."""
    return np.asarray((np.sign(rows) * np.sqrt(np.abs(rows)) - mean) / deviation, np.float32)
