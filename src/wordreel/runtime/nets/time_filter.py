"""Filtering over time with few products: the Toom-Cook (Winograd) identity, for frames laid out as a batch.

Processors run two-dimensional convolutions much better than three-dimensional ones. With the frames of a
window as the batch, `[time, channels, h, w]`, a three-dimensional convolution is a short filter over time
whose products are two-dimensional convolutions; m outputs of an r-tap filter need only m + r - 1 of them
rather than m · r. The result changes in the last digits only.
"""

from __future__ import annotations

import numpy as np

from wordreel.types import Array

POINTS = (
    1.0,
    0.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
)  # where filters are evaluated; the point at infinity is always added


def toom_cook(outputs: int, taps: int) -> tuple[Array, Array, Array]:
    """Matrices with `y = a @ ((g @ filter) * (b @ data))` for `y[i] = Σ_j filter[j] · data[i + j]`.

    Filtering is the transpose of multiplying polynomials, which is evaluating both at n = outputs + taps - 1
    points, multiplying, and interpolating (Winograd 1980; Lavin & Gray 2016 for networks): with V_k the
    `[n, k]` matrix of powers of the points, `a = V_outputs^T`, `g = V_taps`, `b = V_n^-T`.

    >>> a, g, b = toom_cook(2, 3)
    >>> data, taps = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 10.0, 100.0])
    >>> (a @ ((g @ taps) * (b @ data))).round(6).tolist()
    [321.0, 432.0]
    """
    n = outputs + taps - 1
    finite = np.array(POINTS[: n - 1])

    def powers(count: int) -> Array:
        at_infinity = np.eye(count)[-1:]
        return np.concatenate([finite[:, None] ** np.arange(count), at_infinity])

    return powers(outputs).T, powers(taps), np.linalg.inv(powers(n)).T


def time_plan(weight: Array, frames: int, stride: int) -> tuple[Array, Array, Array]:
    """How to run a filter over time: `spread`, `filters`, `gather`.

    `spread [points · tiles · phases, frames]` mixes the frames (padding is leaving frames out), `filters
    [points, out, phases · in, h, w]` are convolved with them point by point, and `gather [length, points ·
    tiles]` mixes the results into output frames. A stride s splits frames and taps into s phases whose
    products add up, so phases lie beside the channels. A tile is 4 output frames, or 2, or 1.
    """
    out, channels, taps, *kernel = weight.shape
    before, _, length = same(frames, taps, stride)
    tile = next(size for size in (4, 2, 1) if length % size == 0)
    tiles, per_phase = length // tile, -(-taps // stride)
    a, g, b = toom_cook(tile, per_phase)
    points = len(g)
    spread = np.zeros((points, tiles, stride, frames))
    gather = np.zeros((tiles, tile, points, tiles))
    for t in range(tiles):
        gather[t, :, :, t] = a
        for phase in range(stride):
            for i in range(points):
                frame = stride * (t * tile + i) + phase - before
                if 0 <= frame < frames:
                    spread[:, t, phase, frame] = b[:, i]
    padded = np.zeros((out, channels, per_phase * stride, *kernel))
    padded[:, :, :taps] = weight
    phased = padded.reshape(out, channels, per_phase, stride, *kernel)
    filters = np.einsum("nj,ocjphw->nopchw", g, phased).reshape(points, out, stride * channels, *kernel)
    return (
        spread.reshape(-1, frames).astype(np.float32),
        filters.astype(np.float32),
        gather.reshape(length, -1).astype(np.float32),
    )


def same(length: int, kernel: int, stride: int) -> tuple[int, int, int]:
    """TensorFlow's "SAME": padding before, padding after, and the length that comes out."""
    out = -(-length // stride)
    padding = max((out - 1) * stride + kernel - length, 0)
    return padding // 2, padding - padding // 2, out
