"""Faces over time: the rows of a faces track that show one face in consecutive seconds become one span.

A track has a row for each face of each second, without where in the picture it was. A face that is seen at
least twice in a row, nearly the same, is a good look at somebody; one that is seen once in a film is often
blurred, a profile or no face at all, and is left out. Pictures count with one row, films with `MIN_ROWS`.

Vectors of small and blurred faces resemble one another whoever they show. Most of what they share is the mean
of all faces, which is subtracted before faces are compared:

    v' = (v − m) / |v − m|,   m = `face_mean.npy`, the mean of faces in photographs of strangers
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from wordreel.types import Float32, Track

LINK = 0.5  # cosine from which on the next second shows the same face
GAP = 2.1  # seconds without the face that a span may have
MIN_ROWS = 2


@dataclass(frozen=True, eq=False)
class FaceSpan:
    """One face from `start` to `end` seconds; `vector [dim]` is the centred, unit mean of its rows."""

    start: float
    end: float
    rows: int
    vector: Float32


def face_spans(track: Track, still: bool = False) -> list[FaceSpan]:
    """Return the faces of a track, in order of their start; of a still picture every row is one."""
    spans: list[list[int]] = []
    times = track.times[:, 0]
    for time in np.unique(times):
        here = np.flatnonzero(times == time)
        open_ = [span for span in spans if time - times[span[-1]] <= GAP]
        taken = _link(track.values, open_, here)
        for row, span in taken.items():
            open_[span].append(row)
        spans += [[row] for row in here.tolist() if row not in taken]
    least = 1 if still else MIN_ROWS
    return [
        FaceSpan(float(times[span[0]]), float(track.times[span[-1], 1]), len(span), vector)
        for span in spans
        if len(span) >= least
        for vector in [centred(track.values[span].mean(axis=0))]
    ]


def _link(values: Float32, spans: list[list[int]], rows: np.ndarray) -> dict[int, int]:
    """Which span each row continues: the most alike first, one row for a span and one span for a row."""
    if not spans or not len(rows):
        return {}
    means = np.stack([values[span].mean(axis=0) for span in spans])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    alike = means @ values[rows].T
    taken: dict[int, int] = {}
    used: set[int] = set()
    for flat in np.argsort(-alike, axis=None, kind="stable").tolist():
        span, row = divmod(flat, len(rows))
        if alike[span, row] < LINK:
            break
        number = int(rows[row])
        if span not in used and number not in taken:
            taken[number] = span
            used.add(span)
    return taken


def centred(vectors: Float32) -> Float32:
    """Vectors `[…, dim]` without the mean of all faces, of length one."""
    rest = vectors - face_mean()
    rows: Float32 = rest / np.maximum(np.linalg.norm(rest, axis=-1, keepdims=True), 1e-9)
    return rows.astype(np.float32)


@cache
def face_mean() -> Float32:
    """`[128]`: the mean of faces in photographs; `python studies/people.py` computes it."""
    with resources.files("wordreel.people").joinpath("face_mean.npy").open("rb") as file:
        mean: Float32 = np.load(file, allow_pickle=False)
    return mean
