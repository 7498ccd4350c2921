"""The sound of the sea, made of noise: a recording that only an ear can find."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SWELL = 4.0  # seconds from one wave to the next
QUIET = 0.15  # of a wave's height, between two of them
DULL = 30.0  # samples: how far the noise is smoothed


def surf(seconds: float, rate: int = 22_050, seed: int = 0) -> NDArray[np.float32]:
    """Smoothed noise that swells and ebbs: `(quiet + max(0, sin)²) · noise`, at most 0.7."""
    t = np.arange(int(seconds * rate)) / rate
    kernel = np.exp(-np.arange(400) / DULL)
    noise = np.convolve(np.random.default_rng(seed).normal(size=len(t)), kernel / kernel.sum(), "same")
    waves = noise * (QUIET + np.clip(np.sin(2 * np.pi * t / SWELL), 0, 1) ** 2)
    return np.asarray(0.7 * waves / np.abs(waves).max(), np.float32)


def write_sound(path: Path, samples: NDArray[np.float32], rate: int = 22_050) -> None:
    """A mono WAV file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
