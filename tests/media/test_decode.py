"""Frames and sound against slow, obvious twins."""

import struct
from itertools import pairwise
from types import SimpleNamespace

import av
import numpy as np
import pytest
from tests.media import make

from wordreel import media
from wordreel.errors import NotMedia, OverLimit
from wordreel.media import AudioNeed, Fence, FrameNeed, Limits, decode
from wordreel.media.video_sampler import upright


def twin(path, rate, short_side):
    """Decode everything, then pick the last frame with pts <= k / rate for every k."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [(frame.pts, frame) for frame in container.decode(stream)]
        first = frames[0][0]
        base = stream.time_base
        times = [(pts - first) * base.numerator / base.denominator for pts, _ in frames]
        ends = times[-1] + float(frames[-1][1].duration * base)
    picked, at = [], []
    k = 0
    while k / rate < ends or k == 0:
        index = max(i for i, time in enumerate(times) if time <= k / rate)
        frame = frames[index][1]
        scale = min(1.0, short_side / min(frame.width, frame.height))
        small = frame.reformat(
            round(frame.width * scale), round(frame.height * scale), format="rgb24", interpolation="AREA"
        )
        picked.append(small.to_ndarray())
        at.append(k / rate)
        k += 1
    return np.stack(picked), np.array(at)


def whole(fence, path, need, window=60.0):
    parts = [w.parts[0] for w in fence.stream(path, [need], window)]
    if isinstance(need, FrameNeed):
        return np.concatenate([p.images for p in parts]), np.concatenate([p.times for p in parts])
    return np.concatenate([p.samples for p in parts])


@pytest.mark.parametrize("suffix", list(make.CODECS))
@pytest.mark.parametrize("rate", [1.0, 3.0, 8.0, 25.0])
def test_frames_equal_the_twin(fence, tmp_path, suffix, rate):
    path = make.video(tmp_path / f"a{suffix}", seconds=4.3)
    images, times = whole(fence, path, FrameNeed(rate, 24))
    wanted, at = twin(path, rate, 24)
    np.testing.assert_allclose(times, at)
    np.testing.assert_array_equal(images, wanted)


@pytest.mark.parametrize("rate", [1.0, 5.0, 7.7])
def test_skipping_unseen_frames_changes_nothing(fence, tmp_path, rate):
    """Many B-frames, several of which are skipped: what is seen stays exact."""
    noise = np.random.default_rng(0)
    images = [noise.integers(0, 255, (6, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1) for _ in range(150)]
    for codec, options in (
        ("libx264", {"bf": "5", "b-pyramid": "normal"}),
        ("libx265", {}),
        ("mpeg4", {"bf": "2"}),
    ):
        path = tmp_path / f"{codec}.mkv"
        with av.open(str(path), "w") as container:
            stream = container.add_stream(
                codec, rate=30, options={**options, "x265-params": "log-level=none"}
            )
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for index, image in enumerate(images):
                frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p")
                frame.pts = index
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        got, times = whole(fence, path, FrameNeed(rate, 48))
        wanted, at = twin(path, rate, 48)
        np.testing.assert_allclose(times, at)
        np.testing.assert_array_equal(got, wanted)


def test_variable_rate(fence, tmp_path):
    stamps = [0.0, 0.04, 0.5, 1.9, 2.0, 2.01, 5.25]
    path = make.video(tmp_path / "a.mkv", stamps=stamps, sound=False)
    images, times = whole(fence, path, FrameNeed(4, 48))
    wanted, at = twin(path, 4, 48)
    np.testing.assert_allclose(times[: len(at)], at)
    np.testing.assert_array_equal(images[: len(at)], wanted)
    shades = images[:, 20, 40, 0].astype(int)
    assert abs(shades[2] - make.shade(2)) < 6
    assert abs(shades[7] - make.shade(2)) < 6  # 1.75 s: nothing new yet
    assert abs(shades[8] - make.shade(4)) < 6  # 2.0 s exactly


@pytest.mark.parametrize("window", [0.7, 1.0, 2.5])
def test_windows_join_to_the_whole(fence, tmp_path, window):
    path = make.video(tmp_path / "a.mp4", seconds=5.0)
    for need in (FrameNeed(3, 24), AudioNeed(16000), AudioNeed(22050)):
        one, many = whole(fence, path, need), whole(fence, path, need, window)
        for a, b in zip(one, many, strict=True) if isinstance(one, tuple) else [(one, many)]:
            np.testing.assert_array_equal(a, b)
    windows = list(fence.stream(path, [FrameNeed(3, 24), AudioNeed(16000), FrameNeed(7, 12)], window))
    assert windows[0].start == 0
    for before, after in pairwise(windows):
        assert before.end == after.start
    for w in windows[:-1]:
        assert w.end - w.start == pytest.approx(window)
        assert all(w.start <= t < w.end for t in w.parts[0].times)
        assert w.parts[1].start == pytest.approx(w.start, abs=1e-4)
    assert windows[-1].end == pytest.approx(5.0, abs=0.05)
    assert sum(len(w.parts[2]) for w in windows) == 35


@pytest.mark.parametrize("turn", [90, 180, -90])
def test_rotation(fence, tmp_path, turn):
    path = make.video(tmp_path / "a.mp4", rotation=turn, sound=False)
    info = fence.probe(path)
    assert (info.width, info.height) == ((64, 48) if turn == 180 else (48, 64))
    assert info.rotation == turn % 360
    images, _ = whole(fence, path, FrameNeed(1, 48))
    assert images.shape[1:3] == (info.height, info.width)
    stored = make.picture(0, 64, 48)
    shown = np.rot90(stored, turn // 90)  # both count quarter turns counter-clockwise
    assert np.abs(images[0].astype(int) - shown).mean() < 10


def test_exif_orientation(fence, tmp_path):
    """A photograph taken with the camera on its side."""
    data = make.still(tmp_path / "a.jpg").read_bytes()
    tiff = b"MM\x00*\x00\x00\x00\x08\x00\x01" + struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0) + bytes(4)
    exif = b"Exif\x00\x00" + tiff
    (tmp_path / "b.jpg").write_bytes(
        data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]
    )
    info = fence.probe(tmp_path / "b.jpg")
    assert (info.kind, info.width, info.height) == ("image", 48, 64)
    images, _ = whole(fence, tmp_path / "b.jpg", FrameNeed(1, 256))
    assert np.abs(images[0].astype(int) - np.rot90(make.picture(5, 64, 48), -1)).mean() < 10


def test_upright_knows_all_eight():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert {upright(image, k).tobytes() for k in range(8)}.__len__() == 8
    np.testing.assert_array_equal(upright(image, 4), image[:, ::-1])


@pytest.mark.parametrize("size", [(65, 49), (1, 1), (17, 3), (3, 200)])
def test_odd_sizes(fence, tmp_path, size):
    path = make.video(tmp_path / "a.mkv", size=size, sound=False, codec="ffv1")
    images, _ = whole(fence, path, FrameNeed(1, 24))
    short = min(24, min(size))
    assert min(images.shape[1:3]) == short
    assert max(images.shape[1:3]) <= 16 * 24
    if min(size) <= 24 and max(size) <= 16 * 24:
        assert images.shape[1:3] == size[::-1]


@pytest.mark.parametrize("suffix", [*make.PICTURE_CODECS, ".gif"])
def test_stills(fence, tmp_path, suffix):
    path = make.still(tmp_path / f"a{suffix}")
    info = fence.probe(path)
    assert (info.kind, info.duration, info.width, info.height) == ("image", 0.0, 64, 48)
    (window,) = fence.stream(path, [FrameNeed(8, 256), AudioNeed(16000)])
    assert window.parts[1] is None
    assert window.parts[0].times.tolist() == [0.0]
    assert (
        np.abs(window.parts[0].images[0].astype(int) - make.picture(5, 64, 48)).mean() < 20
    )  # gif has few colours


@pytest.mark.parametrize("suffix", list(make.SOUND_CODECS))
@pytest.mark.parametrize("rate", [16000, 22050])
def test_sound(fence, tmp_path, suffix, rate):
    path = make.sound(tmp_path / f"a{suffix}")
    info = fence.probe(path)
    assert (info.kind, info.has_video, info.sample_rate) == ("audio", False, 48000)
    assert info.duration == pytest.approx(2.0, abs=0.06)
    (window,) = fence.stream(path, [AudioNeed(rate), FrameNeed(1, 48)])
    samples = window.parts[0].samples
    assert window.parts[1] is None
    assert len(samples) / rate == pytest.approx(2.0, abs=0.06)
    assert np.abs(samples).max() == pytest.approx(0.5, abs=0.08)  # channels are averaged, not added
    loud = np.abs(samples) > 0.1
    assert np.flatnonzero(loud)[-1] / rate == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("delay", [0.5, 0.0, 2.0])
def test_sound_that_starts_late_is_padded(fence, tmp_path, delay):
    path = make.video(tmp_path / "a.mkv", seconds=3.0, sound_delay=delay)
    samples = whole(fence, path, AudioNeed(16000))
    loud = np.flatnonzero(np.abs(samples) > 0.1) / 16000
    assert loud[0] == pytest.approx(delay, abs=0.03)
    assert loud[-1] == pytest.approx(delay + 1.5, abs=0.03)


def test_cover_art_is_not_video(fence, tmp_path):
    song = make.sound(tmp_path / "a.mp3").read_bytes()
    art = make.still(tmp_path / "art.png").read_bytes()
    body = b"\x00image/png\x00\x03\x00" + art
    frame = b"APIC" + struct.pack(">I", len(body)) + b"\x00\x00" + body
    size = bytes((len(frame) >> shift) & 0x7F for shift in (21, 14, 7, 0))
    (tmp_path / "b.mp3").write_bytes(b"ID3\x03\x00\x00" + size + frame + song)
    assert fence.probe(tmp_path / "b.mp3").kind == "audio"


def test_one_shot_helpers(tmp_path):
    path = make.video(tmp_path / "a.mp4", seconds=4.0)
    assert media.probe(path).kind == "video"
    assert len(media.frames(path, rate=5, short_side=24)) == 20
    some = media.frames(path, rate=5, short_side=24, start=2.5, end=3.5)
    np.testing.assert_allclose(some.times, 2.5 + np.arange(5) / 5)
    everything = media.frames(path, rate=10, short_side=24)
    np.testing.assert_array_equal(some.images, everything.images[25:35:2])
    assert media.audio(path, 22050).seconds == pytest.approx(4.0, abs=0.05)
    silent = make.video(tmp_path / "b.mp4", sound=False)
    with pytest.raises(NotMedia, match="no sound"):
        media.audio(silent)
    with pytest.raises(NotMedia, match="only sound"):
        media.frames(make.sound(tmp_path / "c.wav"))


def test_limits(tmp_path):
    path = make.video(tmp_path / "a.mp4", seconds=4.0)
    for limits, words in (
        (Limits(pixels=1000), "64 x 48 pixels is over the limit of 0.001 megapixels"),
        (Limits(seconds=2.0), "over the limit of 2 seconds"),
        (Limits(file_bytes=100), "over the limit"),
    ):
        with Fence(limits) as fence:
            for call in (fence.probe, lambda p, f=fence: list(f.stream(p, [FrameNeed(1, 48)]))):
                with pytest.raises(OverLimit, match=words):
                    call(path)


def test_a_silent_video_asked_for_sound_still_says_how_long_it_is(tmp_path):
    path = make.video(tmp_path / "a.mp4", seconds=3.0, sound=False)
    with media.Fence() as fence:
        (window,) = fence.stream(path, [media.AudioNeed(16000)])
    assert window.parts == (None,)
    assert window.end == pytest.approx(3.0, abs=0.11)


def test_needs_share_conversions_and_change_nothing(fence, tmp_path):
    path = make.video(tmp_path / "a.mp4", seconds=3.0)
    needs = [FrameNeed(5, 1000), FrameNeed(2, 48), FrameNeed(5, 24), FrameNeed(1, 500)]
    (together,) = fence.stream(path, needs)
    for need, part in zip(needs, together.parts, strict=True):
        (alone,) = fence.stream(path, [need])
        np.testing.assert_array_equal(part.images, alone.parts[0].images)
        np.testing.assert_array_equal(part.times, alone.parts[0].times)


@pytest.mark.parametrize(
    ("cores", "width", "height", "device", "count"),
    [
        (2, 640, 360, False, 1),
        (2, 1920, 1080, False, 1),
        (2, 3840, 2160, False, 2),
        (2, 0, 0, False, 2),
        (8, 640, 360, False, 1),
        (8, 1920, 1080, False, 2),
        (8, 3840, 2160, True, 1),
    ],
)
def test_two_threads_decode_where_decoding_is_most_of_the_work(
    monkeypatch: pytest.MonkeyPatch, cores: int, width: int, height: int, device: bool, count: int
) -> None:
    monkeypatch.setattr(decode, "cores", lambda: cores)
    context = SimpleNamespace(width=width, height=height, is_hwaccel=device, thread_count=0)
    stream = SimpleNamespace(codec_context=context, thread_type="")
    decode.threads(stream)
    assert (context.thread_count, stream.thread_type) == (count, "SLICE" if count == 1 else "AUTO")
