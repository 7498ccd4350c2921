"""Where one shot ends and the next begins, from a few small frames a second.

Each frame becomes a short descriptor; a boundary is where the frames before differ from the frames after
by much more than frames around there usually do. Frames of 48 px at 5 a second are enough.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wordreel.media.types import Frames
from wordreel.types import Float32, Float64

ROWS, COLUMNS, LEVELS = 4, 6, 4
_COLOURS = LEVELS**3
_CELLS = ROWS * COLUMNS
_AROUND = 5
"""Samples on either side that tell how much the picture moves anyway."""


def describe(frames: Frames) -> Float32:
    """Compute descriptors `[n, 136]`: a colour histogram (64) and the mean colour of 4 x 6 cells (72).

    The histogram forgives motion, the cells tell apart shots in the same colours. Rows of consecutive
    windows can be put together and given to `find_shots` as one.
    """
    images = frames.images
    if len(images) == 0:
        return np.zeros((0, _COLOURS + 3 * _CELLS), np.float32)
    return np.stack([np.concatenate([_colours(image), _cells(image)]) for image in images])


def _colours(image: NDArray[np.uint8]) -> Float32:
    """Share of pixels in each of 4 x 4 x 4 colours."""
    level = (image >> 6).astype(np.int32)
    colour = (level[..., 0] * LEVELS + level[..., 1]) * LEVELS + level[..., 2]
    counts = np.bincount(colour.ravel(), minlength=_COLOURS)
    shares: Float32 = (counts / counts.sum()).astype(np.float32)
    return shares


def _cells(image: NDArray[np.uint8]) -> Float32:
    """Mean colour of each cell of a grid, in [0, 1]; a cell of a tiny picture is at least one pixel."""
    height, width = image.shape[:2]
    rows = np.minimum(np.arange(ROWS + 1) * height // ROWS, height - 1)[:ROWS]
    columns = np.minimum(np.arange(COLUMNS + 1) * width // COLUMNS, width - 1)[:COLUMNS]
    sums = np.add.reduceat(np.add.reduceat(image, rows, 0, np.uint32), columns, 1)
    tall = np.maximum(np.diff(np.append(rows, height)), 1)
    wide = np.maximum(np.diff(np.append(columns, width)), 1)
    return (sums / (255.0 * tall[:, None, None] * wide[None, :, None])).astype(np.float32).ravel()


def difference(a: Float32, b: Float32) -> Float32:
    """Return how unlike two rows are, in [0, 1].

    This is the mean of histogram distance and cell distance.

    d = (|h_a - h_b|_1 / 2 + min(1, 3 mean |c_a - c_b|)) / 2.
    """
    colours = np.abs(a[..., :_COLOURS] - b[..., :_COLOURS]).sum(-1) / 2
    cells = np.minimum(1.0, 3.0 * np.abs(a[..., _COLOURS:] - b[..., _COLOURS:]).mean(-1))
    unlike: Float32 = ((colours + cells) / 2).astype(np.float32)
    return unlike


def change(descriptors: Float32) -> Float32:
    """Change at each sample `i` `[n]`: the least difference between two frames before and two after.

    Taking the least means that a flash, a camera's click or a single broken frame, after which the
    old picture comes back, is not a change.
    """
    n = len(descriptors)
    scores = np.zeros(n, np.float32)
    if n < 2:
        return scores
    at = np.arange(1, n)
    least = np.full(n - 1, np.inf, np.float32)
    for before in (1, 2):
        for after in (0, 1):
            first, second = np.maximum(at - before, 0), np.minimum(at + after, n - 1)
            least = np.minimum(least, difference(descriptors[first], descriptors[second]))
    scores[1:] = least
    return scores


def shot_boundaries(
    descriptors: Float32, times: Float64, min_seconds: float = 0.6, floor: float = 0.18, contrast: float = 2.5
) -> list[float]:
    """Return the times at which a new shot begins.

    A sample is a boundary when its change is at least `floor`, is the largest within `min_seconds`, and
    is `contrast` times the usual change around it (mean of the neighbours, itself and the two next to
    it left out), which rises with motion and so asks more of a restless scene.
    """
    scores = change(descriptors)
    boundaries: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if scores[i] < floor:
            break
        if scores[i] < contrast * _usual(scores, int(i)):
            continue
        if all(abs(times[i] - times[j]) >= min_seconds - 1e-6 for j in boundaries):
            boundaries.append(int(i))
    return [float(times[i]) for i in sorted(boundaries)]


def _usual(scores: Float32, i: int) -> float:
    around = np.concatenate([scores[max(1, i - _AROUND) : max(1, i - 1)], scores[i + 2 : i + 1 + _AROUND]])
    return float(around.mean()) if len(around) else 0.0


def find_shots(
    descriptors: Float32, times: Float64, end: float, min_seconds: float = 0.6
) -> list[tuple[float, float]]:
    """Find shots `(start, end)` that cover `[0, end]` without gaps, each at least `min_seconds` long.

    >>> black, white = np.zeros((1, 136), np.float32), np.ones((1, 136), np.float32)
    >>> rows = np.concatenate([black] * 10 + [white] * 10)
    >>> find_shots(rows, np.arange(20) / 5, end=4.0)
    [(0.0, 2.0), (2.0, 4.0)]
    """
    cuts = shot_boundaries(descriptors, times, min_seconds)
    inside = [cut for cut in cuts if min_seconds - 1e-6 <= cut <= end - min_seconds + 1e-6]
    edges = [0.0, *inside, max(0.0, float(end))]
    return list(pairwise(edges))
