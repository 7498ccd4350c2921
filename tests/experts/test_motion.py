"""The motion expert: which frames it looks at, what it says of a video, and its golden numbers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wordreel.experts import motion
from wordreel.experts.appearance import class_names
from wordreel.media.types import Frames, Sound
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track

GOLDEN = Path(__file__).parent / "golden" / "motion.npz"
PERIOD = 0.16


@pytest.fixture(scope="module")
def expert() -> motion.MotionExpert:
    if not WeightStore().has(motion.WEIGHTS):
        pytest.skip(f"needs `wordreel weights fetch {motion.WEIGHTS}`")
    return motion.MotionExpert(WeightStore())


def waves(count: int, start: float = 0.0, height: int = 60, width: int = 80) -> Frames:
    """Coloured waves that move: every pixel is a formula of its place and time."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    images = np.stack(
        [
            np.stack([np.sin(x / 5 + t / 3 + c) * np.cos(y / (7 + c) - t / 5) for c in range(3)], axis=-1)
            for t in range(count)
        ]
    )
    return Frames(
        (127.5 + 127 * images).astype(np.uint8), start + PERIOD * np.arange(count, dtype=np.float64), PERIOD
    )


def windows(count: int) -> list[tuple[int, list[int]]]:
    """The first frame of every segment and the 16 frames looked at, from all frames at once."""
    if count < motion.WINDOW:
        return [(0, [step * count // motion.WINDOW for step in range(motion.WINDOW)])]
    plan = []
    for first in range(0, count, motion.SEGMENT):
        length = min(motion.SEGMENT, count - first)
        if length >= motion.WINDOW // 2:
            start = min(first + (length - motion.WINDOW) // 2, count - motion.WINDOW)
            plan.append((first, list(range(start, start + motion.WINDOW))))
    return plan


def numbered(first: int, last: int) -> Frames:
    """Frames of one pixel whose colour is their number."""
    numbers = np.arange(first, last)
    images = np.stack([numbers // 256, numbers % 256, 0 * numbers], axis=1).astype(np.uint8)
    return Frames(images[:, None, None], PERIOD * numbers.astype(np.float64), PERIOD)


def looked_at(count: int, cuts: list[int], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[int]]]:
    """What a chunk that comes in pieces looks at."""
    seen: list[list[int]] = []

    def features(frames: np.ndarray) -> np.ndarray:
        colours = frames[:, 0, 0].astype(int)
        seen.append((256 * colours[:, 0] + colours[:, 1]).tolist())
        return np.zeros((1, 4), np.float32)

    with monkeypatch.context() as patch:
        patch.setattr(motion, "SIZE", 2)
        chunk = motion.MotionChunk(features)
        for first, last in pairwise([0, *sorted(cuts), count]):
            chunk.push(numbered(first, last))
        track = chunk.finish()
    assert isinstance(track, Track)
    assert track.times[-1, 1] == pytest.approx(PERIOD * count)
    return [(round(start / PERIOD), frames) for start, frames in zip(track.times[:, 0], seen, strict=True)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(count=st.integers(2, 400), data=st.data())
def test_pieces_are_looked_at_as_the_whole_is(
    count: int, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = data.draw(st.lists(st.integers(0, count), max_size=6))
    assert looked_at(count, cuts, monkeypatch) == windows(count)


def test_whole_windows_lie_in_the_middle_of_their_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = looked_at(75, [], monkeypatch)
    assert [(first, seen[0], seen[-1]) for first, seen in plan] == [(0, 8, 23), (32, 40, 55), (64, 59, 74)]


@pytest.mark.parametrize(("count", "rows"), [(16, 1), (31, 1), (39, 1), (40, 2), (71, 2), (72, 3)])
def test_a_short_end_joins_the_stretch_before(count: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(looked_at(count, [10], monkeypatch)) == rows


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
    head = motion.recogniser(WeightStore())
    assert head.fingerprint == expert.fingerprint
    labels = head.labels(track)
    np.testing.assert_allclose(labels.scores, head.weight[:, :2].T + head.bias, rtol=1e-6)
    assert labels.names == class_names("kinetics400.txt")
    assert len(set(labels.names)) == 400


def test_the_same_numbers_as_ever(expert: motion.MotionExpert) -> None:
    golden = np.load(GOLDEN)
    track = expert.extract(waves(40))
    assert isinstance(track, Track)
    np.testing.assert_allclose(track.values, golden["values"], atol=2e-3)
    np.testing.assert_array_equal(
        motion.recogniser(WeightStore()).labels(track).scores.argmax(1), golden["best"]
    )
