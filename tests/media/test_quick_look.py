"""Key frames alone, against a twin that decodes everything and picks them."""

import os
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from tests.media import make

from wordreel.media import FrameNeed
from wordreel.media import decode as quick_look
from wordreel.media.container import DecodeTask
from wordreel.media.formats import MP4
from wordreel.media.types import Limits

NEED = FrameNeed(0.5, 24)


def film(path: Path, seconds: int, apart: float, rate: int = 10) -> Path:
    """A film with a key frame every `apart` seconds, and B-frames between."""
    with av.open(str(path), "w") as container:
        options = {"g": str(round(apart * rate)), "keyint_min": "1", "sc_threshold": "0", "bf": "2"}
        stream = container.add_stream("libx264", rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(seconds * rate):
            frame = av.VideoFrame.from_ndarray(make.picture(index, 64, 48), format="rgb24")
            frame.pts = index
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def looked(fence, path, window=60.0):
    windows = list(fence.quick_look(path, NEED, window))
    assert [a.end for a in windows[:-1]] == [b.start for b in windows[1:]]
    for one in windows:
        assert ((one.parts[0].times >= one.start) & (one.parts[0].times <= one.end)).all()
    images = [one.parts[0].images for one in windows if len(one.parts[0])]
    return np.concatenate(images), np.concatenate([one.parts[0].times for one in windows]), windows[-1].end


def twin(path, only_key_frames):
    """Decode everything, and keep what comes at least a step after the last; key frames, or all."""
    kept, times = [], []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            far = not times or frame.time - times[-1] >= 1 / NEED.rate
            if far and (frame.key_frame or not only_key_frames):
                kept.append(frame.reformat(32, 24, format="rgb24", interpolation="AREA").to_ndarray())
                times.append(frame.time)
    return np.stack(kept), np.array(times)


@pytest.mark.parametrize("window", [60.0, 4.0])
@pytest.mark.parametrize("apart", [0.5, 1.0, 2.0, 2.5])
def test_dense_key_frames_equal_the_twin(fence, tmp_path, apart, window):
    path = film(tmp_path / "a.mp4", 12, apart)
    images, times, end = looked(fence, path, window)
    wanted, at = twin(path, only_key_frames=True)
    np.testing.assert_allclose(times, at)
    np.testing.assert_array_equal(images, wanted)
    assert end == pytest.approx(12.0, abs=0.11)
    assert np.diff(times).max() < 2 * (1 / NEED.rate + apart)


@pytest.mark.parametrize("apart", [6.0, 100.0])
def test_gaps_between_small_pictures_are_filled(fence, tmp_path, apart):
    path = film(tmp_path / "a.mp4", 16, apart)
    images, times, _ = looked(fence, path)
    wanted, at = twin(path, only_key_frames=False)
    for time, image in zip(times, images, strict=True):
        np.testing.assert_array_equal(image, wanted[np.flatnonzero(np.isclose(at, time))[0]])
    assert max(b - a for a, b in pairwise([*times, 16.0])) <= 4.0


def test_gaps_stay_where_filling_them_is_dear(tmp_path, monkeypatch):
    """In this process, because a worker has its own constants."""
    path = film(tmp_path / "a.mp4", 16, 6.0)
    monkeypatch.setattr(quick_look, "CHEAP", 64 * 48)  # a frame a second
    sent = []
    with path.open("rb") as file:
        task = DecodeTask(file.fileno(), os.path.getsize(path), MP4, Limits())  # noqa: PTH202
        quick_look.decode_quick_look(task, NEED, 60.0, lambda header, payload=b"": sent.append(header))
    assert [header["time"] for header in sent if header["is"] == "frame"] == [0.0, 6.0, 12.0]


@pytest.mark.parametrize("suffix", list(make.CODECS))
def test_every_container(fence, tmp_path, suffix):
    path = make.video(tmp_path / f"a{suffix}", seconds=9.0)
    _, times, end = looked(fence, path)
    assert times[0] == 0.0
    assert np.diff(times).min() >= 2.0 - 1e-9
    assert end >= times[-1]


def test_pictures_sounds_and_turned_films(fence, tmp_path):
    (window,) = fence.quick_look(make.still(tmp_path / "a.png"), NEED)
    assert (window.end, window.parts[0].times.tolist()) == (0.0, [0.0])
    (window,) = fence.quick_look(make.sound(tmp_path / "a.wav", seconds=3.0), NEED)
    assert window.parts == (None,)
    assert window.end == pytest.approx(3.0, abs=0.1)
    turned = make.video(tmp_path / "turned.mp4", rotation=90)
    images, _, _ = looked(fence, turned)
    assert images.shape[1:] == (32, 24, 3)
