"""Faces over time, and groups of them over a library.

Faces over time: the rows of a faces track that show one face in consecutive seconds become one span.

A track has a row for each face of each second, without where in the picture it was. A face that is seen at
least twice in a row, nearly the same, is a good look at somebody; one that is seen once in a film is often
blurred, a profile or no face at all, and is left out. Pictures count with one row, films with `MIN_ROWS`.

Vectors of small and blurred faces resemble one another whoever they show. Most of what they share is the mean
of all faces, which is subtracted before faces are compared:

    v' = (v − m) / |v − m|,   m = `face_mean.npy`, the mean of faces in photographs of strangers

Group faces by person: average linkage over centred face vectors, new faces together with known groups.

    s(A, B) = mean over a ∈ A, b ∈ B of ⟨a, b⟩, with −1 instead of ⟨a, b⟩ where both are seen at the same time

The two most alike clusters are merged until none are more alike than `THRESHOLD`. Sums of similarities add up
when clusters merge, so a merge costs one row of a matrix: O(clusters²) memory and time. Groups that the owner
named, merged or split are never merged with one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from wordreel.types import Float32, Float64, Int64, Track

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
    """Return vectors `[…, dim]` without the mean of all faces, of length one."""
    rest = vectors - face_mean()
    rows: Float32 = rest / np.maximum(np.linalg.norm(rest, axis=-1, keepdims=True), 1e-9)
    return rows.astype(np.float32)


@cache
def face_mean() -> Float32:
    """Return the mean `[128]` of faces in photographs; `python studies/people.py` computes it."""
    with resources.files("wordreel.people").joinpath("face_mean.npy").open("rb") as file:
        mean: Float32 = np.load(file, allow_pickle=False)
    return mean


THRESHOLD = 0.46  # which one in 10,000 pairs of strangers reaches: results/people


def group_faces(
    vectors: Float32, groups: Int64, apart: Int64, edited: Sequence[int], threshold: float = THRESHOLD
) -> Int64:
    """Return the group of each face.

    Args:
        vectors: `[faces, dim]`, unit.
        groups: `[faces]`: the group that a face is in, −1 for a new one.
        apart: `[pairs, 2]`: faces that are seen at the same time, so two people.
        edited: Groups that are not merged with one another.
        threshold: The least mean similarity of two clusters that are merged.

    Returns:
        `[faces]`: known groups keep their number, the lower one of two that are merged, an edited one always;
        new groups have numbers below −1.
    """
    labels = groups.copy()
    fresh = np.flatnonzero(groups < 0)
    labels[fresh] = -2 - np.arange(len(fresh))
    names, cluster = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return labels
    sums, sizes = _sums(vectors, cluster, apart, len(names))
    fixed = np.isin(names, np.array(list(edited), np.int64))
    sums[np.ix_(fixed, fixed)] = -np.inf
    np.fill_diagonal(sums, -np.inf)
    order = [_priority(int(name), bool(held)) for name, held in zip(names, fixed, strict=True)]
    into = _merge(sums, sizes, order, threshold)
    return np.asarray(names[into[cluster]], np.int64)


def candidate_groups(vectors: Float32, groups: Int64, new: Float32, threshold: float = THRESHOLD) -> Int64:
    """Return the known groups that new faces can change: those alike enough to one of them.

    Two groups were apart before, and a mean over new faces is above the threshold only if one of them is, so
    the others stay as they are.
    """
    if not len(vectors) or not len(new):
        return np.zeros(0, np.int64)
    names, cluster, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.zeros((len(names), vectors.shape[1]), np.float64)
    np.add.at(sums, cluster, vectors)
    nearest = (sums / sizes[:, None] @ new.T).max(axis=1)
    return np.asarray(names[nearest >= threshold], np.int64)


def _sums(vectors: Float32, cluster: Int64, apart: Int64, count: int) -> tuple[Float64, Float64]:
    """`[clusters, clusters]`: sums of similarities between clusters; `[clusters]`: their sizes."""
    total = np.zeros((count, vectors.shape[1]), np.float64)
    np.add.at(total, cluster, vectors)
    sums = total @ total.T
    first, second = apart.T
    penalty = 1.0 + (vectors[first] * vectors[second]).sum(axis=1)
    for one, other in ((first, second), (second, first)):
        np.subtract.at(sums, (cluster[one], cluster[other]), penalty)
    return sums, np.bincount(cluster, minlength=count).astype(np.float64)


def _priority(name: int, edited: bool) -> tuple[bool, bool, int]:
    """Of two merged clusters the first in this order gives the name: edited, known, older."""
    return (not edited, name < 0, name if name >= 0 else -name)


def _merge(sums: Float64, sizes: Float64, order: Sequence[tuple[bool, bool, int]], threshold: float) -> Int64:
    """Into which cluster each goes."""
    into = np.arange(len(sizes))
    alike = sums / np.outer(sizes, sizes)
    best = alike.argmax(axis=1)
    value = alike[np.arange(len(best)), best]
    while True:
        one = int(value.argmax())
        if value[one] < threshold:
            return into
        two = int(best[one])
        keep, gone = (one, two) if order[one] <= order[two] else (two, one)
        into[into == gone] = keep
        sums[keep] += sums[gone]
        sums[:, keep] = sums[keep]
        sums[keep, keep] = -np.inf
        sizes[keep] += sizes[gone]
        alike[keep] = sums[keep] / (sizes[keep] * sizes)
        alike[:, keep] = alike[keep]
        for line in (alike, sums):
            line[gone] = line[:, gone] = -np.inf
        stale = np.flatnonzero((best == gone) | (best == keep))
        better = alike[:, keep] > value
        best[better], value[better] = keep, alike[better, keep]
        for row in {*stale.tolist(), keep, gone}:
            best[row] = alike[row].argmax()
            value[row] = alike[row, best[row]]
