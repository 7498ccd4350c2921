from pathlib import Path

import cv2
import numpy as np
import pytest

from wordreel.errors import WeightsCorrupt
from wordreel.experts import appearance
from wordreel.experts.appearance import CARD, FILE, SHA256, AppearanceExpert, class_names, recogniser
from wordreel.experts.base import fingerprint
from wordreel.experts.preprocess import resize_crop
from wordreel.media.types import Frames, Sound
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent

GOLDEN = Path(__file__).parent / "golden" / "appearance.npz"


def picture(height=240, width=320):
    """A disc on stripes: made by a formula, so that it is the same everywhere."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    disc = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (height / 3) ** 2
    stripes = 127 + 100 * np.sin(x / 9)
    layers = [
        np.where(disc, 230, stripes),
        np.where(disc, 120, y / height * 255),
        np.where(disc, 20, stripes[:, ::-1]),
    ]
    return np.stack(layers, axis=-1).round().astype(np.uint8)


@pytest.fixture(scope="module")
def expert():
    """Its weights come with wordreel: none are fetched."""
    return AppearanceExpert(WeightStore(Path("/nowhere")))


def test_the_golden_picture(expert):
    golden = np.load(GOLDEN)
    track = expert.extract(Frames(picture()[None], np.zeros(1), 1.0))
    np.testing.assert_allclose(track.values[0, :16], golden["features"], atol=1e-3)
    labels = recogniser(WeightStore()).labels(track)
    best = np.argsort(-labels.scores[0])[:5]
    np.testing.assert_array_equal(best, golden["classes"])
    np.testing.assert_allclose(labels.scores[0, best], golden["logits"], atol=1e-2)


def test_batches_do_not_matter_and_rows_keep_their_times(expert):
    rng = np.random.default_rng(0)
    images = np.stack([np.roll(picture(), int(shift), axis=1) for shift in rng.integers(0, 320, 19)])
    times = np.arange(19) * 0.5 + 3.0
    track = expert.extract(Frames(images, times, 0.5))
    assert track.values.shape == (19, CARD.dim)
    assert track.values.dtype == np.float32
    np.testing.assert_array_equal(track.times, np.stack([times, times + 0.5], axis=1))
    for number in (0, 15, 16, 18):
        alone = expert.extract(Frames(images[number : number + 1], times[number : number + 1], 0.5))
        np.testing.assert_allclose(alone.values[0], track.values[number], atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3000), (720, 404), (260, 260)])
def test_any_shape_of_frame(expert, shape):
    track = expert.extract(Frames(np.full((1, *shape, 3), 90, np.uint8), np.zeros(1), 1.0))
    assert np.isfinite(track.values).all()
    assert track.values.std() > 0


def test_nothing_to_see(expert):
    assert isinstance(expert.extract(Frames(np.zeros((0, 4, 4, 3), np.uint8), np.zeros(0), 1.0)), Absent)
    assert isinstance(expert.extract(Sound(np.zeros(10, np.float32), 10)), Absent)


def test_the_fingerprint_is_of_card_and_weights(expert):
    assert expert.fingerprint == fingerprint(CARD, SHA256)
    assert recogniser(WeightStore(Path("/nowhere"))).fingerprint == expert.fingerprint


def test_another_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "other").write_bytes(FILE.read_bytes()[:-1])
    monkeypatch.setattr(appearance, "FILE", tmp_path / "other")
    with pytest.raises(WeightsCorrupt, match="expected hash"):
        AppearanceExpert(WeightStore())


def test_class_names():
    listed = class_names("imagenet.txt")
    assert len(listed) == len(set(listed)) == 1000
    assert (listed[0], listed[207], listed[281], listed[967], listed[999]) == (
        "tench",
        "golden retriever",
        "tabby",
        "espresso",
        "toilet tissue",
    )


@pytest.mark.parametrize("shape", [(90, 160), (160, 90), (100, 100), (61, 60)])
def test_cutting_first_is_scaling_first(shape):
    """Its obvious twin: scale the shorter side, then cut the middle."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    smooth = np.stack([x, y, x + y], axis=-1)
    image = (smooth / smooth.max() * 255).astype(np.uint8)
    scale = 60 / min(shape)
    height, width = round(shape[0] * scale), round(shape[1] * scale)
    scaled = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    top, left = (height - 60) // 2, (width - 60) // 2
    found = resize_crop(image[None], 60)[0].astype(int)
    assert np.abs(found - scaled[top : top + 60, left : left + 60]).max() <= 3


def test_enlarging_and_no_frames():
    assert resize_crop(picture(100, 100)[None], 260).shape == (1, 260, 260, 3)
    assert resize_crop(np.zeros((0, 5, 5, 3), np.uint8), 8).shape == (0, 8, 8, 3)
    flat = np.full((1, 3, 7, 3), 77, np.uint8)
    assert (resize_crop(flat, 11) == 77).all()
