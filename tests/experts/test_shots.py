"""Shots: the track is the descriptors, and the boundaries can be found from it again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wordreel.experts import shots
from wordreel.media import describe, find_shots
from wordreel.media.types import Frames, Sound
from wordreel.types import Absent, Track


def film(first: int = 0) -> Frames:
    """Six seconds by formula: a drifting gradient, cut at 2 s and at 4 s."""
    y, x = np.mgrid[:48, :64]
    images = []
    for i in range(30):
        scene = i // 10
        planes = (3 * x + 2 * i, 2 * y + 90 * scene, 40 * scene + 0 * x)
        images.append(np.stack(planes, -1).clip(0, 255).astype(np.uint8))
    return Frames(np.stack(images)[first:], np.arange(first, 30) / 5, 0.2)


def test_golden() -> None:
    track = shots.ShotsExpert().extract(film())
    assert isinstance(track, Track)
    assert track.values.dtype == np.float32
    assert track.dim == shots.CARD.dim
    np.testing.assert_allclose(track.times[:, 1] - track.times[:, 0], 0.2)
    with np.load(Path(__file__).parent / "golden" / "shots.npz") as golden:
        np.testing.assert_allclose(track.values[::6], golden["values"], atol=1e-6)


def test_boundaries_come_from_the_stored_track() -> None:
    track = shots.ShotsExpert().extract(film())
    assert isinstance(track, Track)
    found = find_shots(track.values, track.times[:, 0], end=6.0)
    assert found == [(0.0, 2.0), (2.0, 4.0), (4.0, 6.0)]


def test_all_frames_equal_frames_one_by_one() -> None:
    whole = film()
    track = shots.ShotsExpert().extract(whole)
    assert isinstance(track, Track)
    for i in range(len(whole)):
        one = describe(Frames(whole.images[i : i + 1], whole.times[i : i + 1], 0.2))
        np.testing.assert_array_equal(track.values[i], one[0])


def test_a_still_picture_has_none() -> None:
    still = Frames(np.zeros((1, 48, 48, 3), np.uint8), np.zeros(1), 0.2)
    assert shots.ShotsExpert().extract(still) == Absent("a still picture has no shots")


def test_one_last_frame_of_a_film_still_counts() -> None:
    track = shots.ShotsExpert().extract(film(first=29))
    assert isinstance(track, Track)
    assert track.times.tolist() == [[5.8, 6.0]]


def test_wrong_media() -> None:
    with pytest.raises(TypeError, match="frames"):
        shots.ShotsExpert().extract(Sound(np.zeros(10, np.float32), 16000))
