"""A track as a few tokens: rows that lie in a clip, averaged over stretches of time, on one scale.

    token = (sign(x) √|x| − mean) / deviation

The square root tames the long tails of pooled activations; mean and deviation are those of the training rows.
"""

from __future__ import annotations

import numpy as np

from wordreel.types import Bool, Clip, Float32, Track


def stretches(track: Track, clip: Clip | None, most: int) -> Float32 | None:
    """`[n ≤ most, dim]` means of the rows that overlap the clip (all rows without one); None without any."""
    rows = track.values if clip is None else track.values[inside(track, clip)]
    if len(rows) == 0:
        return None
    parts = np.array_split(rows, min(most, len(rows)))
    return np.stack([part.mean(axis=0) for part in parts]).astype(np.float32)


def inside(track: Track, clip: Clip) -> Bool:
    """Which rows of a track overlap a clip: all, for a whole video."""
    if clip.whole:
        return np.ones(len(track), bool)
    return np.asarray((track.times[:, 0] < clip.end) & (track.times[:, 1] > clip.start))


def scaled(rows: Float32, mean: Float32, deviation: Float32) -> Float32:
    """Tokens on the scale the model was trained on."""
    return np.asarray((rooted(rows) - mean) / deviation, np.float32)


def rooted(rows: Float32) -> Float32:
    """`sign(x) √|x|`"""
    return np.asarray(np.sign(rows) * np.sqrt(np.abs(rows)), np.float32)
