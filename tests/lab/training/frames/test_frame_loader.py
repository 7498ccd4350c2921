"""Decoded frames and batches against decoding everything, one file at a time."""

import os
import signal

import av
import numpy as np
import pytest
from tests.media import make

from wordreel.errors import MediaError
from wordreel.lab.training.frames.decode_frames import FrameSpec, frame_numbers, read_frames
from wordreel.lab.training.frames.frame_loader import FrameLoader

SPEC = FrameSpec(32, most=3)


def slow_frames(path, spec):
    """Decode every frame, resize, crop, and keep the numbers that the rule names."""
    with av.open(str(path)) as opened:
        frames = list(opened.decode(video=0))
        rate = float(opened.streams.video[0].average_rate)
    scaler = av.video.reformatter.VideoReformatter()
    kept = []
    for number in frame_numbers(len(frames), rate, spec.rate, spec.most, spec.position):
        width = int(spec.size * frames[number].width / frames[number].height)
        image = scaler.reformat(frames[number], width, spec.size, format="rgb24", interpolation="BICUBIC")
        left = round((width - spec.size) / 2)
        kept.append(image.to_ndarray()[:, left : left + spec.size])
    return np.stack(kept)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths = [make.video(folder / f"{n}.mp4", seconds=1 + n, sound=False) for n in range(5)]
    paths.append(folder / "picture.png")
    with av.open(str(paths[-1]), "w", format="image2") as out:
        stream = out.add_stream("png", rate=1)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "rgb24"
        out.mux(stream.encode(av.VideoFrame.from_ndarray(make.picture(3, 64, 48), format="rgb24")))
    paths.append(folder / "broken.mp4")
    paths[-1].write_bytes(paths[0].read_bytes()[:200])
    return paths


@pytest.mark.parametrize("spec", [SPEC, FrameSpec(24, 4, 2, "last"), FrameSpec(32, 64, 5, "first")])
def test_frames_are_those_of_a_whole_decode(files, spec):
    for path in files[:5]:
        np.testing.assert_array_equal(read_frames(path, spec), slow_frames(path, spec))


def test_a_picture_is_one_frame_and_a_broken_file_says_why(files):
    assert read_frames(files[5], SPEC).shape == (1, 32, 32, 3)
    with pytest.raises(MediaError, match="truncated"):
        read_frames(files[6], SPEC)


@pytest.mark.parametrize("cache", [0, 10**6, 40_000])
def test_batches_are_the_files_frames_with_any_cache(files, cache):
    loader = FrameLoader(files, SPEC, workers=2, ahead=2, cache_bytes=cache)
    batches = [np.array(some) for some in ([0, 1, 2, 3], [5, 5], [6, 4, 5], [3, 2, 1, 0])]
    try:
        for _ in range(2):
            for items, (frames, counts) in zip(batches, loader.load(batches), strict=True):
                assert frames.shape[1] == (1 if items.tolist() == [5, 5] else 3)
                for row, item in enumerate(items):
                    want = np.zeros((0, 32, 32, 3)) if item == 6 else read_frames(files[item], SPEC)
                    assert counts[row] == len(want)
                    np.testing.assert_array_equal(frames[row, : len(want)].numpy(), want)
        assert list(loader.failed) == [6]
        assert "truncated" in loader.failed[6]
    finally:
        loader.close()


def test_a_dead_worker_is_replaced(files):
    loader = FrameLoader(files, SPEC, workers=2, ahead=1)
    batches = [np.array([0, 1])] * 6
    try:
        found = []
        for number, (_, counts) in enumerate(loader.load(batches)):
            if number == 1:
                os.kill(next(iter(loader._running)).pid, signal.SIGKILL)
            found.append(counts.tolist())
        assert found == [[1, 2]] * 6
        assert not loader.failed
    finally:
        loader.close()


def test_stopping_early_leaves_a_loader_that_works(files):
    loader = FrameLoader(files, SPEC, workers=1, ahead=2)
    try:
        stream = loader.load([np.array([0, 1])] * 9)
        next(stream)
        stream.close()
        assert [counts.tolist() for _, counts in loader.load([np.array([3, 5])])] == [[3, 1]]
    finally:
        loader.close()
