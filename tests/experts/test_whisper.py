"""Whisper's spectrogram in blocks and its voice-activity filter in batches, against faster-whisper's own."""

from __future__ import annotations

import numpy as np
import pytest
from faster_whisper.feature_extractor import FeatureExtractor
from faster_whisper.vad import SileroVADModel, VadOptions, get_speech_timestamps, get_vad_model

from wordreel.experts import whisper
from wordreel.experts.whisper import blockwise_extractor, find_speech, speech_probabilities

RATE = 16_000


@pytest.mark.parametrize("seconds", [0.2, 3.0, 7.013])
def test_blocks_equal_the_whole(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(whisper, "BLOCK", 100)
    samples = np.random.default_rng(1).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)
    samples[: len(samples) // 3] *= 1e-6  # so quiet that the loudest moment bounds it
    wanted = FeatureExtractor()(samples)
    got = blockwise_extractor()()(samples)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, atol=2e-5)
    assert (wanted == wanted.min()).sum() > 10


def test_silence_is_finite() -> None:
    silent = np.zeros(RATE, np.float32)
    np.testing.assert_allclose(blockwise_extractor()()(silent), FeatureExtractor()(silent), atol=1e-6)


def test_the_same_array_is_transformed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = blockwise_extractor()()
    samples = np.random.default_rng(2).normal(0, 0.1, RATE).astype(np.float32)
    first = extractor(samples)
    assert extractor(samples) is first
    np.testing.assert_array_equal(extractor(samples), first)  # changed or not, it is read anew by now
    assert extractor(samples.copy()) is not first


def vowels(seconds):
    """Bursts of a buzzing voice with formants, between silences."""
    at = np.arange(int(16000 * seconds)) / 16000
    pitch = 120 + 20 * np.sin(2 * np.pi * 0.7 * at)
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    buzz = sum(np.sin(k * phase) / (1 + abs(k * 120 - 700) / 300) for k in range(1, 25))
    noise = np.random.default_rng(0).normal(size=len(at))
    return (0.1 * buzz * (np.sin(2 * np.pi * 0.4 * at) > 0) + 0.001 * noise).astype(np.float32)


@pytest.mark.parametrize("extra", [0, 500])
def test_batches_equal_the_whole(monkeypatch, extra):
    monkeypatch.setattr(whisper, "BATCH", 70)
    sound = vowels(10.0)[: 512 * 300 + extra]
    padded = np.pad(sound, (0, 512 - len(sound) % 512))
    model = get_vad_model()
    wanted = SileroVADModel.__call__(model, padded.copy())
    got = speech_probabilities(model.session, padded.copy())
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert wanted.max() > wanted.min() + 0.1
    model.__class__ = SileroVADModel
    plain = get_speech_timestamps(sound, VadOptions())
    assert find_speech(sound) == plain
    assert type(model) is not SileroVADModel
