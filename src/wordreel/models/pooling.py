"""Which rows of a track a clip has, and their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wordreel.types import Clip, Float32, Float64, Track


def overlap(times: Float64, clip: Clip) -> Float32:
    """Return the seconds that each of `times [n, 2]` shares with the clip; 1 for every row of a whole video.

    >>> overlap(np.array([[0.0, 2.0], [2.0, 4.0]]), Clip("", 1.0, 2.5)).tolist()
    [1.0, 0.5]
    """
    return np.ones(len(times), np.float32) if clip.whole else _seconds(times, clip)


def shares(times: Float64, clip: Clip) -> Float32:
    """Return the seconds that each row shares with the clip, of whole videos too; 1 for each in a picture.

    >>> times = np.array([[0.0, 1.0], [1.0, 4.0]])
    >>> shares(times, Clip("", 0.0, 4.0, whole=True)).tolist()
    [1.0, 3.0]
    >>> shares(np.zeros((2, 2)), Clip("", 0.0, 0.0, whole=True)).tolist()
    [1.0, 1.0]
    """
    seconds = _seconds(times, clip)
    return overlap(times, clip) if clip.whole and not seconds.any() else seconds


def _seconds(times: Float64, clip: Clip) -> Float32:
    shared = np.minimum(times[:, 1], clip.end) - np.maximum(times[:, 0], clip.start)
    return np.asarray(np.maximum(shared, 0), np.float32)


def clip_mean(rows: Float32, times: Float64, clip: Clip) -> Float32 | None:
    """Return the mean of the rows of a clip, weighted by shared time; None where it has none."""
    weights = shares(times, clip)
    return (weights @ rows / weights.sum()).astype(np.float32) if weights.any() else None


def unit(rows: Float32) -> Float32:
    """Return x / ‖x‖ over the last dimension; zero stays zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12), np.float32)


def rows_in(tracks: Mapping[str, Track], experts: Sequence[str], clip: Clip) -> dict[str, Track]:
    """Return the rows, and their words, of some experts' tracks that share time with a clip."""
    inside = {}
    for expert in experts:
        if expert not in tracks:
            continue
        track = tracks[expert]
        shared = overlap(track.times, clip) > 0
        if shared.all():
            inside[expert] = track
        elif shared.any():
            times = track.times[shared]
            start, end = times[:, 0].min(), times[:, 1].max()
            words = tuple(line for line in track.words if line.start < end and line.end > start)
            inside[expert] = Track(track.values[shared], times, words)
    return inside


def words_in(track: Track, start: float, end: float) -> str:
    """Return the words spoken or on screen between two times, as one line."""
    return " ".join(words.text for words in track.words if words.start < end and words.end > start)
