"""Every hostile file is refused in bounded time, and the fence works on afterwards."""

import resource
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.hostile import make_hostile, make_odd_but_fine
from tests.media import make

from wordreel.errors import BrokenMedia, MediaError, NotMedia, OverLimit
from wordreel.media import AudioNeed, Fence, FrameNeed, Limits

NEEDS = [FrameNeed(2, 32), AudioNeed(16000)]
LIMITS = Limits(wall_floor=10.0, memory_bytes=2**30)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return make_hostile(tmp_path_factory.mktemp("h"))


def test_all_are_refused_and_the_fence_lives_on(hostile, tmp_path):
    assert len(hostile) >= 32
    good = make.video(tmp_path / "good.mp4")
    before_descriptors = _descriptors()
    with Fence(LIMITS) as fence:
        (first,) = fence.stream(good, NEEDS)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name, path in hostile.items():
            for call in (fence.probe, lambda p: list(fence.stream(p, NEEDS))):
                begun = time.monotonic()
                with pytest.raises(MediaError) as caught:
                    call(path)
                assert time.monotonic() - begun < LIMITS.wall_floor, name
                assert 5 < len(caught.value.message) < 300, name
                assert "\n" not in caught.value.message, name
            begun = time.monotonic()
            with suppress(MediaError):  # a probe comes first and refuses it
                list(fence.quick_look(path, FrameNeed(0.25, 32)))
            assert time.monotonic() - begun < LIMITS.wall_floor, name
            (again,) = fence.stream(good, NEEDS)
            np.testing.assert_array_equal(again.parts[0].images, first.parts[0].images, err_msg=name)
            np.testing.assert_array_equal(again.parts[1].samples, first.parts[1].samples, err_msg=name)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 64 * 1024, f"the parent grew by {grown} KiB"
    assert _descriptors() <= before_descriptors


def _descriptors():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("empty.mp4", BrokenMedia, "the file is empty"),
        ("bomb_40000.png", OverLimit, "40000 x 40000 pixels is over the limit of 64 megapixels"),
        ("huge.avi", OverLimit, "40000 x 40000"),
        ("huge.mov", OverLimit, "40000 x 40000"),
        ("huge.gif", OverLimit, "65535 x 65535"),
        ("claims_a_billion_seconds.mkv", OverLimit, "1000000000 seconds"),
        ("frame_at_500000_seconds.mkv", OverLimit, "seconds is over the limit"),
        ("playlist_as.mp4", NotMedia, "HLS"),
        ("data_in_another_file.mov", BrokenMedia, "in another file"),
        ("cut_at_50_moov_last.mp4", BrokenMedia, "moov"),
        ("all_frames_gone.mp4", BrokenMedia, "no frame could be decoded"),
        ("pipe.mp4", NotMedia, "named pipe"),
        ("zeros.mp4", NotMedia, "device"),
        ("folder.mp4", NotMedia, "folder"),
        ("dangling.mp4", BrokenMedia, "no such file"),
    ],
)
def test_reasons(fence, hostile, name, kind, words):
    with pytest.raises(kind, match=words):
        fence.probe(hostile[name])


def test_odd_but_fine_files_decode(fence, tmp_path):
    for name, path in make_odd_but_fine(tmp_path).items():
        info = fence.probe(path)
        windows = list(fence.stream(path, NEEDS))
        frames = sum(len(w.parts[0]) for w in windows if w.parts[0] is not None)
        samples = sum(len(w.parts[1].samples) for w in windows if w.parts[1] is not None)
        assert frames + samples > 0, name
        assert info.duration == pytest.approx(windows[-1].end, abs=0.2), name


def test_a_cut_file_gives_what_is_there(fence, tmp_path):
    """Half of a film with its index in front: the frames that come are those of the whole film."""
    path = make.video(tmp_path / "a.mp4", seconds=6.0, options={"movflags": "faststart"})
    (film,) = fence.stream(path, [FrameNeed(10, 48)])
    (tmp_path / "b.mp4").write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (half,) = fence.stream(tmp_path / "b.mp4", [FrameNeed(10, 48)])
    count = len(half.parts[0]) - 2  # the last may be concealed damage
    assert 5 <= count < 50
    np.testing.assert_array_equal(half.parts[0].images[:count], film.parts[0].images[:count])


def test_damage_in_the_middle_is_passed_over(fence, tmp_path):
    path = make.video(tmp_path / "a.ts", seconds=10.0, sound=False)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 1000] = bytes(1000)
    path.write_bytes(data)
    windows = list(fence.stream(path, [FrameNeed(1, 48)]))
    assert windows[-1].end == pytest.approx(10.0, abs=0.3)
    assert sum(len(w.parts[0]) for w in windows) == 10


def test_one_wrong_stamp_does_not_freeze_a_broadcast_for_hours(fence, tmp_path):
    """A stamp that leaps by an hour and back is damage; hours of one frozen frame are not made of it."""
    path = make.video(tmp_path / "a.ts", seconds=3.0, sound=False)
    data = bytearray(path.read_bytes())
    starts = [
        i + 9 for i in range(len(data) - 20) if data[i : i + 4] == b"\x00\x00\x01\xe0" and data[i + 7] & 0x80
    ]
    assert len(starts) > 10
    data[starts[12]] |= 0x08  # the highest bit of the stamp: 2^32 ticks of 1/90000 s
    path.write_bytes(data)
    windows = list(fence.stream(path, [FrameNeed(10, 48)]))
    assert windows[-1].end == pytest.approx(3.0, abs=0.5)
