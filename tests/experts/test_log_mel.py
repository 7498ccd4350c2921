"""The spectrogram in blocks, against faster-whisper's of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from faster_whisper.feature_extractor import FeatureExtractor

from wordreel.experts import log_mel
from wordreel.experts.log_mel import blockwise_extractor

RATE = 16_000


@pytest.mark.parametrize("seconds", [0.2, 3.0, 7.013])
def test_blocks_equal_the_whole(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(log_mel, "BLOCK", 100)
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
