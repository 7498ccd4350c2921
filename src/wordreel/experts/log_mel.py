"""The spectrogram VGGish listens to (Hershey et al. 2017): 64 log-mel bands, a hundred times a second."""

from __future__ import annotations

from functools import cache

import numpy as np

from wordreel.types import Float32, Float64

RATE = 16_000
WINDOW, HOP, TRANSFORM = 400, 160, 512  # samples: 25 ms, 10 ms
BANDS, LOWEST, HIGHEST = 64, 125.0, 7500.0
PATCH = 96  # spectra: 0.96 s


def patches(samples: Float32) -> Float32:
    """`[n, 1, 96, 64]`, one patch for each whole 0.96 s of sound at 16 kHz.

    Windows overlap by 15 ms; the end is padded by as much silence, so that sound cut at multiples of 0.96 s
    gives the patches of the whole, but for the last window of each piece.
    """
    spectra = log_mel(np.append(samples, np.zeros(WINDOW - HOP, np.float32)))
    count = len(spectra) // PATCH
    return spectra[: count * PATCH].reshape(count, 1, PATCH, BANDS)


def log_mel(samples: Float32) -> Float32:
    """log(mel + 0.01) of the magnitude spectra under a periodic Hann window, `[spectra, 64]`."""
    if len(samples) < WINDOW:
        return np.zeros((0, BANDS), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi / WINDOW * np.arange(WINDOW))
    magnitude = np.abs(np.fft.rfft(frames * hann, TRANSFORM))
    return np.log(magnitude @ mel_matrix() + 0.01).astype(np.float32)


@cache
def mel_matrix() -> Float64:
    """`[257, 64]`: triangles of height one, evenly spaced in mel = 1127 ln(1 + f / 700); nothing of 0 Hz."""
    bins = _mel(np.linspace(0.0, RATE / 2, TRANSFORM // 2 + 1))[:, None]
    edges = np.linspace(_mel(np.float64(LOWEST)), _mel(np.float64(HIGHEST)), BANDS + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
    matrix: Float64 = np.maximum(0.0, np.minimum(rising, falling))
    matrix[0] = 0.0
    return matrix


def _mel(hertz: Float64 | np.float64) -> Float64:
    result: Float64 = 1127.0 * np.log1p(hertz / 700.0)
    return result
