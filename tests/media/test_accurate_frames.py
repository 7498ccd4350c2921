"""Colours of frames for networks that saw pictures as image libraries decode them."""

import av
import numpy as np
import pytest

from wordreel.media import FrameNeed

Image = pytest.importorskip("PIL.Image")


def scene(width=660, height=498):
    """Soft colours and hard edges between light and dark, as in photographs."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    red = 120 + 90 * np.sin(x / 37) * np.cos(y / 29)
    green = 120 + 90 * np.sin((x + y) / 53)
    blue = 120 + 90 * np.cos((2 * x - y) / 47)
    light = np.where((x // 60 + y // 45) % 2, 1.1, 0.5)
    return (np.stack([red, green, blue], -1) * light[..., None]).round().astype(np.uint8)


def as_pillow(path, short_side):
    """The twin: decode with Pillow, scale the shorter side bicubically."""
    picture = Image.open(path).convert("RGB")
    factor = min(1.0, short_side / min(picture.size))
    size = round(picture.width * factor), round(picture.height * factor)
    return np.asarray(picture.resize(size, Image.Resampling.BICUBIC)).astype(float)


def seen(fence, path, need):
    (window,) = fence.stream(path, [need])
    return window.parts[0].images[0].astype(float)


@pytest.mark.parametrize("short_side", [224, 1000])
@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".png"])
def test_a_picture_is_what_pillow_sees(fence, tmp_path, suffix, short_side):
    path = tmp_path / f"scene{suffix}"
    Image.fromarray(scene()).save(path, quality=90)
    wanted = as_pillow(path, short_side)
    off = np.abs(seen(fence, path, FrameNeed(1.0, short_side, accurate=True)) - wanted).mean()
    fast = np.abs(seen(fence, path, FrameNeed(1.0, short_side)) - wanted).mean()
    assert off < (0.4 if short_side == 1000 else 0.7)
    assert off < fast or off == 0


def test_a_film_has_the_colours_of_its_frames(fence, tmp_path):
    pixels = scene(320, 240)
    path = tmp_path / "film.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=5, options={"crf": "1"})
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for index in range(5):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts = index
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    off = np.abs(seen(fence, path, FrameNeed(1.0, 240, accurate=True)) - pixels)
    fast = np.abs(seen(fence, path, FrameNeed(1.0, 240)) - pixels)
    assert off.mean() < 0.8 * fast.mean()


def test_both_kinds_of_one_size_are_given_to_whom_they_belong(fence, tmp_path):
    path = tmp_path / "scene.jpg"
    Image.fromarray(scene()).save(path, quality=90)
    needs = [FrameNeed(1.0, 96), FrameNeed(1.0, 96, accurate=True), FrameNeed(2.0, 96)]
    (window,) = fence.stream(path, needs)
    fast, accurate, again = (part.images[0] for part in window.parts)
    np.testing.assert_array_equal(fast, again)
    np.testing.assert_array_equal(accurate, seen(fence, path, needs[1]))
    assert (fast != accurate).any()


def test_fingerprints_do_not_know_how_colours_are_converted():
    assert repr(FrameNeed(1.0, 224)) == repr(FrameNeed(1.0, 224, accurate=True))
