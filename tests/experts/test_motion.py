"""The motion expert: which frames it looks at, what it says of a video, and its golden numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordreel.experts import motion
from wordreel.experts.class_head import class_names
from wordreel.media.types import Frames, Sound
from wordreel.types import Absent, Track
from wordreel.weights.store import WeightStore

GOLDEN = Path(__file__).parent / "golden" / "motion.npz"
PERIOD = 0.16


@pytest.fixture(scope="module")
def expert() -> motion.MotionExpert:
    if not WeightStore().has(motion.WEIGHTS):
        pytest.skip(f"needs `wordreel weights fetch {motion.WEIGHTS}`")
    return motion.load(WeightStore())


def waves(count: int, start: float = 0.0, height: int = 60, width: int = 80) -> Frames:
    """Coloured waves that move: every pixel is a formula of its place and time."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    images = np.stack(
        [
            np.stack([np.sin(x / 5 + t / 3 + c) * np.cos(y / (7 + c) - t / 5) for c in range(3)], axis=-1)
            for t in range(count)
        ]
    )
    return Frames((127.5 + 127 * images).astype(np.uint8), start + PERIOD * np.arange(count), PERIOD)


@given(st.integers(2, 400))
def test_windows_cover_any_video(count: int) -> None:
    plan = motion.windows(count)
    firsts = [first for first, _ in plan]
    assert firsts == list(range(0, motion.SEGMENT * len(plan), motion.SEGMENT))
    for _, chosen in plan:
        assert len(chosen) == motion.WINDOW
        assert 0 <= chosen[0] <= chosen[-1] < count
        assert set(np.diff(chosen)) <= ({1} if count >= motion.WINDOW else {0, 1})
    # No more than half a window is left to a stretch that is not its own, and no stretch is thrown away.
    assert 0 < count - firsts[-1] < motion.SEGMENT + motion.WINDOW // 2


def test_whole_windows_lie_in_the_middle_of_their_stretch() -> None:
    plan = motion.windows(64)
    assert [(first, chosen[0], chosen[-1]) for first, chosen in plan] == [(0, 8, 23), (32, 40, 55)]


@pytest.mark.parametrize(("count", "windows"), [(16, 1), (31, 1), (39, 1), (40, 2), (71, 2), (72, 3)])
def test_a_short_end_joins_the_stretch_before(count: int, windows: int) -> None:
    assert len(motion.windows(count)) == windows


def test_times_are_the_segments(expert: motion.MotionExpert) -> None:
    track = expert.extract(waves(75, start=61.44))
    assert isinstance(track, Track)
    np.testing.assert_allclose(
        track.times - 61.44, [[0, 5.12], [5.12, 10.24], [10.24, 12.0]], rtol=0, atol=1e-9
    )
    assert track.values.shape == (3, 1024)


def test_what_does_not_move(expert: motion.MotionExpert) -> None:
    assert expert.extract(waves(1)) == Absent("a still picture does not move")
    assert isinstance(expert.extract(waves(3, start=61.44)), Absent)  # the crumbs of a longer video
    assert isinstance(expert.extract(waves(3)), Track)  # all there is of a short one
    assert isinstance(expert.extract(Sound(np.zeros(5, np.float32), 22050)), Absent)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 256), (256, 2)])
def test_odd_shapes_are_seen_all_the_same(expert: motion.MotionExpert, height: int, width: int) -> None:
    track = expert.extract(waves(16, height=height, width=width))
    assert isinstance(track, Track)
    assert np.isfinite(track.values).all()


def test_labels_are_linear_in_the_features(expert: motion.MotionExpert) -> None:
    track = Track(np.eye(2, 1024, dtype=np.float32), np.array([[0.0, 1.0], [1.0, 2.0]]))
    labels = expert.labels(track)
    head = expert._recogniser
    np.testing.assert_allclose(labels.scores, head.weight[:, :2].T + head.bias, rtol=1e-6)
    assert labels.names == class_names("kinetics400.txt")
    assert len(set(labels.names)) == 400


def test_the_same_numbers_as_ever(expert: motion.MotionExpert) -> None:
    golden = np.load(GOLDEN)
    track = expert.extract(waves(40))
    assert isinstance(track, Track)
    np.testing.assert_allclose(track.values, golden["values"], atol=2e-3)
    np.testing.assert_array_equal(expert.labels(track).scores.argmax(1), golden["best"])
