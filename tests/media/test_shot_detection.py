"""Cuts that are there are found, and motion, flashes and fades do not make more of them."""

import os
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.media import make

from wordreel.media import Fence, FrameNeed, Frames, describe, find_shots, shot_boundaries
from wordreel.media.shot_detection import change, difference

NEED = FrameNeed(5, 48)


def scene(seed, count, motion=1):
    """`count` frames of a texture that slides along: a shot with a moving camera."""
    noise = np.random.default_rng(seed)
    base, spread = noise.integers(30, 200, 3), noise.integers(10, 50)
    coarse = base + noise.integers(-spread, spread, (9, 40, 3))
    texture = np.clip(coarse, 0, 255).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    return [texture[:, motion * i % 200 : motion * i % 200 + 96] for i in range(count)]


def shots_of(images, rate=10, path=None, fence=None):
    """Through a real file when a path is given, straight from the pixels otherwise."""
    if path is not None:
        make.video(path, rate=rate, size=(96, 72), images=images, sound=False)
        windows = list(fence.stream(path, [NEED], 3.0))
        rows = np.concatenate([describe(w.parts[0]) for w in windows])
        times = np.concatenate([w.parts[0].times for w in windows])
        return find_shots(rows, times, windows[-1].end)
    every = np.stack(images)[:: rate // 5]
    frames = Frames(every, np.arange(len(every)) / 5, 0.2)
    return find_shots(describe(frames), frames.times, len(images) / rate)


def test_known_cuts_in_a_real_file(fence, tmp_path):
    lengths = [30, 20, 50, 14, 36]
    images = [image for seed, n in enumerate(lengths) for image in scene(seed, n)]
    shots = shots_of(images, path=tmp_path / "a.mp4", fence=fence)
    wanted = np.cumsum([0, *lengths]) / 10
    assert len(shots) == len(lengths)
    np.testing.assert_allclose([s for s, _ in shots], wanted[:-1], atol=0.2)
    assert shots[-1][1] == pytest.approx(wanted[-1])


def test_many_cuts():
    """Twenty random films of eight shots: nearly all cuts are found, hardly any invented."""
    found = invented = total = 0
    for film in range(20):
        dice = random.Random(film)
        lengths = [dice.randrange(10, 60, 2) for _ in range(8)]
        images = [im for i, n in enumerate(lengths) for im in scene(100 * film + i, n, dice.randrange(4))]
        cuts = [start for start, _ in shots_of(images)][1:]
        true = np.cumsum(lengths)[:-1] / 10
        hits = sum(bool(np.any(np.abs(true - cut) < 0.21)) for cut in cuts)
        found, invented, total = found + hits, invented + len(cuts) - hits, total + len(true)
    assert found >= 0.95 * total
    assert invented <= 0.05 * total


def test_shots_cover_everything_without_gaps():
    dice = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 7, 60):
        frames = Frames(dice.integers(0, 255, (n, 12, 16, 3), np.uint8), np.arange(n) / 5, 0.2)
        end = n / 5 + 0.13
        shots = find_shots(describe(frames), frames.times, end)
        assert shots[0][0] == 0.0
        assert shots[-1][1] == pytest.approx(end)
        assert all(a[1] == b[0] for a, b in pairwise(shots))
        assert all(b - a >= 0.6 - 1e-9 for a, b in shots) or len(shots) == 1


def test_a_flash_is_not_a_cut():
    images = scene(1, 60)
    for i in (20, 21):
        images[i] = np.full_like(images[i], 250)
    assert len(shots_of(images)) == 1


def test_a_slow_fade_and_motion_are_not_cuts():
    images = scene(2, 80, motion=3)
    dim = np.clip(np.linspace(1.4, 0.4, 80), 0, 1)
    faded = [(image * share).astype(np.uint8) for image, share in zip(images, dim, strict=True)]
    assert len(shots_of(images)) == 1
    assert len(shots_of(faded)) == 1


def test_describe_equals_its_slow_twin():
    image = np.random.default_rng(5).integers(0, 255, (1, 49, 85, 3), np.uint8)
    row = describe(Frames(image, np.zeros(1), 0.2))[0]
    colours = np.zeros(64)
    for red, green, blue in image.reshape(-1, 3) // 64:
        colours[16 * int(red) + 4 * int(green) + int(blue)] += 1
    cells = []
    for r in range(4):
        for c in range(6):
            cell = image[0, r * 49 // 4 : (r + 1) * 49 // 4, c * 85 // 6 : (c + 1) * 85 // 6]
            cells += list(cell.reshape(-1, 3).mean(0) / 255)
    np.testing.assert_allclose(row, [*(colours / (49 * 85)), *cells], rtol=1e-5)
    assert describe(Frames(image[:, :2, :3], np.zeros(1), 0.2)).shape == (1, 136)


def test_change_equals_its_slow_twin():
    rows = np.random.default_rng(6).random((20, 136)).astype(np.float32)
    wanted = [0.0]
    for i in range(1, 20):
        pairs = [(b, a) for b in (max(i - 2, 0), i - 1) for a in (i, min(i + 1, 19))]
        wanted.append(min(float(difference(rows[b], rows[a])) for b, a in pairs))
    np.testing.assert_allclose(change(rows), wanted, rtol=1e-5)


@pytest.mark.slow
def test_real_videos_joined():
    """Cuts between the first six seconds of real videos are found; needs a folder of videos."""
    folder = os.environ.get("WORDREEL_TEST_VIDEOS")
    if not folder:
        pytest.skip("set WORDREEL_TEST_VIDEOS to a folder of videos")
    files = random.Random(0).sample(sorted(Path(folder).iterdir()), 48)
    rows = []
    with Fence() as fence:
        for file in files:
            window = next(fence.stream(file, [NEED]))
            rows.append(describe(window.parts[0])[:30])
    joints = np.cumsum([len(r) for r in rows])[:-1] / 5
    everything = np.concatenate(rows)
    cuts = np.array(shot_boundaries(everything, np.arange(len(everything)) / 5))
    # Of two cuts less than 0.6 s apart only the stronger one is kept.
    found = sum(bool(np.any(np.abs(cuts - joint) < 0.59)) for joint in joints)
    assert found >= 0.95 * len(joints)
    assert len(cuts) - found <= len(everything) / 5 / 4  # real videos have cuts of their own
