"""The sound expert: when its rows are, what it does with short and hostile sound, and its golden numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordreel.experts import sound
from wordreel.media.types import Frames, Sound
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track

GOLDEN = Path(__file__).parent / "golden" / "sound.npz"


@pytest.fixture(scope="module")
def expert() -> sound.SoundExpert:
    if not WeightStore().has(sound.WEIGHTS):
        pytest.skip(f"needs `wordreel weights fetch {sound.WEIGHTS}`")
    return sound.SoundExpert(WeightStore())


def chirps(seconds: float, start: float = 0.0) -> Sound:
    """Rising tones that come and go: every sample is a formula of its time."""
    t = np.arange(round(seconds * sound.RATE)) / sound.RATE
    samples = 0.4 * np.sin(2 * np.pi * (200 + 90 * (t % 7)) * t) * np.sin(2 * np.pi * 0.31 * t) ** 2
    return Sound(samples.astype(np.float32), sound.RATE, start)


@given(st.integers(1, 130 * sound.RATE))
def test_rows_cover_all_of_the_sound_without_overlap(samples: int) -> None:
    heard, times = sound.rows(samples)
    assert heard.stop - heard.start == len(times) >= 1
    assert times[0, 0] == 0.0
    assert times[-1, 1] == samples / sound.RATE
    np.testing.assert_array_equal(times[1:, 0], times[:-1, 1])
    assert (times[:, 1] > times[:, 0]).all()
    middles = (sound.FIRST + sound.STEP * np.arange(heard.start, heard.stop)) / sound.RATE
    if len(times) > 1:
        assert ((times[:, 0] <= middles) & (middles <= times[:, 1])).all()


@given(st.integers(1, 60))
def test_eight_rows_around_every_row(count: int) -> None:
    near = sound.around(count)
    assert near.shape == (count, 8)
    if count >= 8:
        assert all(i in near[i] and set(np.diff(near[i])) == {1} for i in range(count))
    else:
        assert near[0].tolist() == (list(range(count)) * 8)[:8]


@pytest.mark.parametrize("seconds", [0.01, 0.7, 1.4, 5.0, 33.3])
def test_any_length_is_heard(expert: sound.SoundExpert, seconds: float) -> None:
    media = chirps(seconds, start=120.0)
    track = expert.extract(Sound(media.samples + np.float32(0.01), media.rate, media.start))
    assert isinstance(track, Track)
    assert np.isfinite(track.values).all()
    assert track.times[0, 0] == 120.0
    assert track.times[-1, 1] == pytest.approx(120.0 + media.seconds)
    assert sound.recogniser(WeightStore()).labels(track).scores.shape == (len(track), 401)


def test_no_row_sees_the_end_of_the_padding(expert: sound.SoundExpert) -> None:
    """The network answers zeros after the end by firing every unit; no row of a track may look like that."""
    track = expert.extract(chirps(47.0))
    assert isinstance(track, Track)
    assert ((track.values > 0).mean(axis=1) < 0.5).all()
    naive = expert._network(sound=chirps(20.0).samples)["features"]
    assert (naive[-1] > 0).mean() > 0.9


def test_what_cannot_be_heard(expert: sound.SoundExpert) -> None:
    quiet = Sound(np.full(50_000, 5e-4, np.float32), sound.RATE)
    assert expert.extract(quiet) == Absent("silent")
    assert isinstance(expert.extract(Sound(np.zeros(0, np.float32), sound.RATE)), Absent)
    assert isinstance(expert.extract(Sound(np.full(9000, np.nan, np.float32), sound.RATE)), Absent)
    picture = Frames(np.zeros((1, 4, 4, 3), np.uint8), np.zeros(1), 1.0)
    assert isinstance(expert.extract(picture), Absent)


def test_hostile_samples_do_not_spread(expert: sound.SoundExpert) -> None:
    samples = chirps(4.0).samples.copy()
    samples[100], samples[200], samples[300] = np.nan, np.inf, -1e30
    track = expert.extract(Sound(samples, sound.RATE))
    assert isinstance(track, Track)
    assert np.isfinite(track.values).all()


def test_labels_compare_places_with_their_average(expert: sound.SoundExpert) -> None:
    track = expert.extract(chirps(15.0))
    assert isinstance(track, Track)
    places = sound.recogniser(WeightStore())
    assert places.fingerprint == expert.fingerprint
    labels = places.labels(track)
    assert len(labels.names) == len(set(labels.names)) == 401
    np.testing.assert_allclose(np.exp(labels.scores + places.usual).sum(1), 1, atol=1e-4)
    # The slow way for one row: a sum over the eight rows of its context.
    weight = places.weight.T.reshape(8, 1024, 401)
    begin = 5 - 4
    logits = places.bias + sum(track.values[begin + k] @ weight[k] for k in range(8))
    np.testing.assert_allclose(labels.scores[5], sound.log_softmax(logits) - places.usual, atol=1e-4)


def test_the_same_numbers_as_ever(expert: sound.SoundExpert) -> None:
    golden = np.load(GOLDEN)
    track = expert.extract(chirps(9.0))
    assert isinstance(track, Track)
    np.testing.assert_allclose(track.values, golden["values"], atol=2e-3)
    np.testing.assert_allclose(track.times, golden["times"], atol=1e-9)
