"""What is heard: VGGish over log-mel spectrograms, 128 numbers per 0.96 s (Hershey et al. 2017).

The raw output of the network, as the papers use it; the whitening and 8-bit rounding that AudioSet's released
features went through are not applied.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from wordreel.experts.base import ExpertEntry, fingerprint
from wordreel.experts.network_experts import published_card
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.runtime.sessions import Network, in_batches
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Float64, Track

WEIGHTS = "vggish"
RATE = 16_000
WINDOW, HOP, TRANSFORM = 400, 160, 512  # samples: 25 ms, 10 ms
BANDS, LOWEST, HIGHEST = 64, 125.0, 7500.0
PATCH = 96  # spectra: 0.96 s
STEP = PATCH * HOP  # samples
SECONDS = STEP / RATE
MIN_SECONDS = 0.25  # seconds: a shorter sound says nothing, a longer one is filled up with silence
BATCH = 32

CARD = published_card(
    WEIGHTS, "sound", "What is heard (VGGish)", 128, AudioNeed(RATE), 60 * SECONDS,
    "A row per 0.96 s of sound, raw embeddings.",
)  # fmt: skip


class VGGishExpert:
    """The loaded expert."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        folder = store.folder(WEIGHTS)
        self.fingerprint = fingerprint(CARD, store.source_hash(WEIGHTS))
        self._network = Network(folder / "network.onnx")

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return one row per 0.96 s.

        Only a sound that is shorter as a whole is filled up with silence.
        """
        if not isinstance(media, Sound) or len(media.samples) == 0:
            return Absent("no sound")
        if media.rate != RATE:
            raise ValueError(f"VGGish takes sound at {RATE} samples a second, got {media.rate}")
        samples = media.samples
        if media.start < SECONDS and MIN_SECONDS <= media.seconds < SECONDS:
            samples = np.append(samples, np.zeros(STEP - len(samples), np.float32))
        heard = patches(samples)
        if not len(heard):
            return Absent("the sound is too short")
        rows = in_batches(lambda part: self._network(patches=part)["features"], heard, BATCH)
        starts = media.start + SECONDS * np.arange(len(heard))
        ends = np.minimum(starts + SECONDS, media.start + media.seconds)
        return Track(rows, np.stack([starts, ends], axis=1))


def patches(samples: Float32) -> Float32:
    """Return `[n, 1, 96, 64]`, one patch for each whole 0.96 s of sound at 16 kHz.

    Windows overlap by 15 ms; the end is padded by as much silence, so that sound cut at multiples of 0.96 s
    gives the patches of the whole, but for the last window of each piece.
    """
    spectra = log_mel(np.append(samples, np.zeros(WINDOW - HOP, np.float32)))
    count = len(spectra) // PATCH
    return spectra[: count * PATCH].reshape(count, 1, PATCH, BANDS)


def log_mel(samples: Float32) -> Float32:
    """Compute log(mel + 0.01) of the magnitude spectra under a periodic Hann window, `[spectra, 64]`."""
    if len(samples) < WINDOW:
        return np.zeros((0, BANDS), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi / WINDOW * np.arange(WINDOW))
    magnitude = np.abs(np.fft.rfft(frames * hann, TRANSFORM))
    return np.log(magnitude @ mel_matrix() + 0.01).astype(np.float32)


@cache
def mel_matrix() -> Float64:
    """Return triangles `[257, 64]` of height one, evenly spaced in mel = 1127 ln(1 + f / 700).

    The row of 0 Hz is zero.
    """
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


EXPERTS = {CARD.name: ExpertEntry(CARD, VGGishExpert)}
