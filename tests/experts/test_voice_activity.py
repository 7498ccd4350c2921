"""The voice-activity filter in batches, against faster-whisper's own."""

import numpy as np
import pytest
from faster_whisper.vad import SileroVADModel, VadOptions, get_speech_timestamps, get_vad_model

from wordreel.experts import voice_activity
from wordreel.experts.voice_activity import find_speech, speech_probabilities


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
    monkeypatch.setattr(voice_activity, "BATCH", 70)
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
