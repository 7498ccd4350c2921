"""Moments cut out of files: copied where a key frame allows it, encoded otherwise, never cut short."""

import os

import av
import numpy as np
import pytest
from tests.media import make

from wordreel.errors import BrokenMedia, DiskError, MediaError, NotMedia, OverLimit
from wordreel.media import AudioNeed, Fence, FrameNeed
from wordreel.media.clip_file import CONTAINERS, cut_clip
from wordreel.media.types import CutRequest, CutStopped, StreamRequest, Watch

SECONDS = 5.0


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Ten frames a second whose greys count them; where they begin anew, encoders set a key frame."""
    root = tmp_path_factory.mktemp("films")
    return {
        suffix: make.video(root / f"film{suffix}", seconds=SECONDS)
        for suffix in (".mp4", ".mkv", ".avi", ".ts")
    }


@pytest.fixture
def cut(fence, tmp_path):
    def cut(film, start, end, name="a.mp4", **fields):
        target = tmp_path / name
        with target.open("wb") as out:
            request = CutRequest(start, end, container=CONTAINERS[target.suffix], **fields)
            return target, fence.cut(film, request, out.fileno())

    return cut


def images(fence, path, start=0.0):
    return next(fence.run(path, StreamRequest((FrameNeed(10, 48),), 60.0, start))).parts[0].images


def greys(fence, path):
    return [int(image[10, 40, 0]) for image in images(fence, path)]


def sound_of(fence, path):
    return next(fence.stream(path, [AudioNeed(8000)])).parts[0].samples


def expected(fence, film, start, end):
    """The greys of the frames on display at tenths of a second from `start` on: the slow, obvious way."""
    first = int(start * 10 + 1e-6)
    return greys(fence, film)[first : first + round((end - start) * 10)]


def key_frames(path):
    with av.open(str(path)) as opened:
        packets = [packet for packet in opened.demux(video=0) if packet.pts is not None]
        first = min(packet.pts for packet in packets)
        return [float((one.pts - first) * one.time_base) for one in packets if one.is_keyframe]


@pytest.mark.parametrize(("suffix", "out"), [(".mp4", ".mp4"), (".mp4", ".mkv"), (".mkv", ".mp4")])
def test_a_near_key_frame_is_copied_from(films, suffix, out, cut, fence):
    key = key_frames(films[suffix])[1]
    target, report = cut(films[suffix], key + 0.3, 4.0, f"a{out}")
    assert (report.picture, report.sound) == ("copied", "copied")
    assert report.start == pytest.approx(key, abs=1e-3)
    assert 4.0 <= report.end <= 4.5  # a few frames late: those that earlier ones are predicted from
    seen, wanted = greys(fence, target), expected(fence, films[suffix], key, 4.0)
    assert seen[: len(wanted)] == wanted
    assert len(seen) - len(wanted) <= 4
    assert fence.probe(target).duration == pytest.approx(report.end - report.start, abs=0.1)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".ts"])
def test_without_a_key_frame_it_begins_exactly(films, suffix, cut, fence):
    target, report = cut(films[suffix], 2.1, 4.1, tolerance=0.0)
    assert (report.picture, report.start) == ("encoded", 2.1)
    assert report.sound == ("encoded" if suffix == ".ts" else "copied")
    seen, wanted = greys(fence, target), expected(fence, films[suffix], 2.1, 4.1)
    assert len(seen) == len(wanted)
    np.testing.assert_allclose(seen, wanted, atol=2)


def test_between_two_frames_the_one_on_display_comes_first(films, cut, fence):
    target, _ = cut(films[".avi"], 2.05, 3.0)
    assert greys(fence, target)[0] == pytest.approx(greys(fence, films[".avi"])[20], abs=2)


def test_a_large_tolerance_never_encodes(films, cut):
    keys = key_frames(films[".mp4"])
    _, report = cut(films[".mp4"], keys[1] - 0.1, 4.0, tolerance=100.0)
    assert (report.picture, report.start) == ("copied", keys[0])


@pytest.mark.parametrize(("suffix", "tolerance"), [(".mp4", 100.0), (".mp4", 0.0), (".ts", 0.5)])
def test_the_sound_is_that_of_the_moment(films, suffix, tolerance, cut, fence):
    """A tone in the first half of the film, silence in the second; MPEG sound is encoded anew."""
    target, report = cut(films[suffix], 1.5, 3.5, tolerance=tolerance)
    sound = sound_of(fence, target)
    turn = round((SECONDS / 2 - report.start) * 8000)
    assert np.abs(sound[turn - 2000 : turn - 800]).max() > 0.3
    assert np.abs(sound[turn + 800 : turn + 2000]).max() < 0.01
    assert len(sound) / 8000 == pytest.approx(3.5 - report.start, abs=0.15)


def test_playable_is_what_browsers_play(films, cut, fence):
    target, report = cut(films[".mkv"], 1.0, 2.0, playable=True)
    info = fence.probe(target)
    assert report.sound == "encoded"
    assert (info.video_codec, info.audio_codec) == ("h264", "aac")


def test_a_sound_file_is_cut_too(tmp_path, cut, fence):
    song = make.sound(tmp_path / "song.mp3", seconds=3.0)
    target, report = cut(song, 1.0, 2.0, "part.m4a")
    assert (report.picture, report.sound) == ("none", "copied")
    assert len(sound_of(fence, target)) / 8000 == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("rotation", [90, 180])
def test_a_turned_video_stays_upright(tmp_path, rotation, cut, fence):
    film = make.video(tmp_path / "film.mp4", seconds=2.0, rotation=rotation)
    for name, tolerance in (("copied.mp4", 100.0), ("encoded.mp4", 0.0)):
        target, report = cut(film, 1.0, 2.0, name, tolerance=tolerance)
        assert report.picture == name.removesuffix(".mp4")
        wanted = images(fence, film, 1.0)[0].astype(int)
        seen = images(fence, target, 1.0 - report.start)[0].astype(int)
        assert seen.shape == wanted.shape
        assert np.abs(seen - wanted).mean() < 4


def test_odd_sizes_lose_a_pixel(tmp_path, cut, fence):
    target, _ = cut(make.video(tmp_path / "film.mkv", size=(65, 49)), 0.5, 1.0, tolerance=0.0)
    info = fence.probe(target)
    assert (info.width, info.height) == (64, 48)


def test_a_cut_can_be_stopped_and_is_bounded(films, tmp_path):
    with (tmp_path / "a").open("wb") as out, Fence() as fence:
        for watch, error in ((Watch(stopped=lambda: True), CutStopped), (Watch(max_bytes=500), OverLimit)):
            with pytest.raises(error):
                fence.cut(films[".mp4"], CutRequest(0.0, 4.0), out.fileno(), watch)
            assert fence._idle == []  # a worker that was stopped is not used again
        report = fence.cut(films[".mp4"], CutRequest(0.0, 4.0), out.fileno())
    assert report.bytes == (tmp_path / "a").stat().st_size


def test_pictures_broken_files_and_late_moments_are_refused(films, tmp_path, cut):
    with pytest.raises(NotMedia, match="no moments"):
        cut(make.still(tmp_path / "a.png"), 0.0, 1.0)
    (tmp_path / "half.mp4").write_bytes(films[".mp4"].read_bytes()[:2000])
    with pytest.raises(BrokenMedia):
        cut(tmp_path / "half.mp4", 0.0, 1.0)
    with pytest.raises(BrokenMedia, match="ends before it"):
        cut(films[".mp4"], 100.0, 110.0)


def test_a_file_is_replaced_only_on_request_and_the_original_never(films, tmp_path):
    film, out = films[".mp4"], tmp_path / "a.mp4"
    before = film.read_bytes()
    out.write_bytes(b"mine")
    with pytest.raises(MediaError, match="exists already"):
        cut_clip(film, 1.0, 2.0, out)
    assert out.read_bytes() == b"mine"
    link = tmp_path / "link.mp4"
    link.symlink_to(film)
    for original in (film, link):
        with pytest.raises(MediaError, match="the video itself"):
            cut_clip(film, 1.0, 2.0, original, overwrite=True)
    seconds = []
    report = cut_clip(film, 1.0, 2.0, out, overwrite=True, on_progress=lambda now: seconds.append(now.done))
    assert out.stat().st_size == report.bytes
    assert seconds[-1] == 1
    assert film.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["a.mp4", "link.mp4"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("start", "end", "name", "error", "words"),
    [
        (2.0, 1.0, "a.mp4", MediaError, "begins before it ends"),
        (-1.0, 1.0, "a.mp4", MediaError, "begins before it ends"),
        (float("nan"), 1.0, "a.mp4", MediaError, "begins before it ends"),
        (1.0, float("inf"), "a.mp4", MediaError, "begins before it ends"),
        (1.0, 2.0, "a.gif", MediaError, "must end with"),
        (1.0, 2.0, "nowhere/a.mp4", DiskError, "nowhere"),
    ],
)
def test_what_cannot_be_asked_leaves_nothing(films, tmp_path, start, end, name, error, words):
    with pytest.raises(error, match=words):
        cut_clip(films[".mp4"], start, end, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
