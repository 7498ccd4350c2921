"""Group faces by person: average linkage over centred face vectors, new faces together with known groups.

    s(A, B) = mean over a ∈ A, b ∈ B of ⟨a, b⟩, with −1 instead of ⟨a, b⟩ where both are seen at the same time

The two most alike clusters are merged until none are more alike than `THRESHOLD`. Sums of similarities add up
when clusters merge, so a merge costs one row of a matrix: O(clusters²) memory and time. Groups that the owner
named, merged or split are never merged with one another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordreel.types import Float32, Float64, Int64

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
