"""Whisper's log-mel spectrogram in blocks: faster-whisper takes 200 MB for that of five minutes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float32

BLOCK = 3000  # frames, 30 seconds
RANGE = 8.0  # powers of ten under the loudest


def log_mel(waveform: Float32, filters: Float32, n_fft: int, hop: int) -> Float32:
    """`[mels, len(waveform) // hop]` of sound in [-1, 1] (Radford et al. 2022, section 2.2).

    x = log₁₀ max(F |STFT|², 10⁻¹⁰) of Hann windows around every `hop`-th sample, the sound mirrored at its
    ends; then (max(x, max x - 8) + 4) / 4.
    """
    window = np.hanning(n_fft + 1)[:-1].astype(np.float32)
    mirrored = np.pad(waveform, n_fft // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(mirrored, n_fft)[::hop][: len(waveform) // hop]
    found = np.empty((len(filters), len(frames)), np.float32)
    for first in range(0, len(frames), BLOCK):
        spectrum = np.fft.rfft(frames[first : first + BLOCK] * window)
        power = filters @ (np.abs(spectrum) ** 2).T
        np.log10(np.maximum(power, 1e-10), out=found[:, first : first + BLOCK])
    np.maximum(found, found.max(initial=-10.0) - np.float32(RANGE), out=found)
    return (found + np.float32(4.0)) / np.float32(4.0)


@cache
def blockwise_extractor() -> type:
    """A `FeatureExtractor` with this spectrogram. It returns the last one again for the very same array."""
    from faster_whisper.feature_extractor import FeatureExtractor

    class BlockwiseExtractor(FeatureExtractor):  # type: ignore[misc]
        _last: tuple[Any, Any] = (None, None)

        def __call__(
            self, waveform: NDArray[Any], padding: int = 160, chunk_length: int | None = None
        ) -> Float32:
            if chunk_length is not None:
                self.n_samples = chunk_length * self.sampling_rate
                self.nb_max_frames = self.n_samples // self.hop_length
            if self._last[0] is waveform:
                features: Float32 = self._last[1]
                self._last = (None, None)  # it is wanted twice, for the language and for the words
                return features
            padded = np.pad(waveform.astype(np.float32, copy=False), (0, padding))
            features = log_mel(padded, self.mel_filters, self.n_fft, self.hop_length)
            self._last = (waveform, features)
            return features

    return BlockwiseExtractor
