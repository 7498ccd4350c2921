"""Experts of the papers with small networks of the same layout: what they are fed and what rows they give."""

import json
from importlib import import_module

import numpy as np
import pytest
from safetensors.numpy import save_file

from wordreel.errors import WeightsMissing
from wordreel.experts import faces, preprocess, registry, vggish
from wordreel.experts.network_experts import TABLE, FrameWindows, read_preprocess
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.runtime import hub
from wordreel.runtime.nets import convnets, sound_networks, video_networks
from wordreel.runtime.nets.net_builder import weight_shapes
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track

RNG = np.random.default_rng(0)


def fill(store, tmp_path, name, shapes):
    state = {key: np.abs(RNG.normal(0, 0.1, shape)).astype(np.float32) for key, shape in shapes.items()}
    save_file(state, str(tmp_path / name))
    hub.add_checkpoint(store, name, tmp_path / name)


def preprocessing(name):
    (entry,) = (entry for entry in json.loads(TABLE.read_text()) if entry["name"] == name)
    return read_preprocess(entry["preprocess"])


def frames(count, rate, height=40, width=60, start=0.0):
    images = RNG.integers(0, 256, (count, height, width, 3), np.uint8)
    return Frames(images, start + np.arange(count) / rate, 1 / rate)


@pytest.mark.parametrize("name", registry.PUBLISHED)
def test_cards_say_how_to_get_the_weights(name, tmp_path):
    card = registry.card(name)
    assert card.name == name
    assert not card.default
    assert f"wordreel weights add {name}" in card.note
    with pytest.raises(WeightsMissing, match=f"wordreel weights add {name} --file"):
        registry.load(name, WeightStore(tmp_path))


def test_a_frame_network_gives_a_row_per_frame(tmp_path, monkeypatch):
    monkeypatch.setattr(convnets, "SENET154", convnets.SENet((1, 1), groups=2, reduction=4, planes=4))
    store = WeightStore(tmp_path / "store")
    fill(store, tmp_path, "senet154", weight_shapes(convnets.SENET154)[0])
    expert = registry.load("senet154", store)
    media = frames(11, 25.0, start=3.0)
    track = expert.extract(media)
    assert isinstance(track, Track)
    np.testing.assert_allclose(track.times, np.stack([media.times, media.times + 0.04], 1))
    network = Network(store.file("senet154"))
    one_by_one = [
        network(frames=preprocessing("senet154")(image[None]))["features"][0] for image in media.images
    ]
    np.testing.assert_allclose(track.values, one_by_one, rtol=1e-4, atol=1e-6)
    assert isinstance(expert.extract(frames(0, 25.0)), Absent)
    assert len(expert.fingerprint) == 16


def test_a_clip_network_gives_a_row_per_window(tmp_path, monkeypatch):
    monkeypatch.setattr(
        video_networks, "R2PLUS1D_34_IG65M", video_networks.R2Plus1D((1, 1), planes=4, stem=5)
    )
    store = WeightStore(tmp_path / "store")
    fill(store, tmp_path, "r2p1d34_ig65m", weight_shapes(video_networks.R2PLUS1D_34_IG65M)[0])
    expert = registry.load("r2p1d34_ig65m", store)
    media = frames(70, 30.0)
    track = expert.extract(media)
    np.testing.assert_allclose(track.times * 30, [[0, 8], [32, 40], [62, 70]])
    network = Network(store.file("r2p1d34_ig65m"))
    clip = preprocessing("r2p1d34_ig65m")(media.images[32:40]).transpose(1, 0, 2, 3)[None]
    np.testing.assert_allclose(track.values[1], network(clips=clip)["features"][0], rtol=1e-4, atol=1e-6)
    assert expert.extract(frames(1, 30.0)) == Absent("a still picture does not move")
    assert isinstance(expert.extract(frames(3, 30.0, start=32.0)), Absent)
    assert len(expert.extract(frames(3, 30.0))) == 1


def test_i3d_sees_64_frames_begun_every_25(tmp_path, monkeypatch):
    small = video_networks.I3D(64, 224, (2, 2, 2), ((1, 1, 1, 1, 1, 1),) * 9)
    monkeypatch.setattr(video_networks, "I3D_KINETICS", small)
    store = WeightStore(tmp_path / "store")
    fill(store, tmp_path, "i3d_paper", weight_shapes(small)[0])
    track = registry.load("i3d_paper", store).extract(frames(90, 25.0))
    np.testing.assert_allclose(track.times * 25, [[0, 64], [25, 89], [26, 90]])
    assert track.values.shape == (3, 4)


@pytest.mark.parametrize(("length", "stride"), [(64, 25), (8, 32), (30, 30), (4, 3)])
def test_windows_leave_no_frames_out_but_those_between_them(length, stride):
    for count in range(1, 200):
        chosen = FrameWindows(length, stride).indices(count)
        assert chosen.shape[1] == length
        assert chosen.min() == 0
        assert chosen.max() < count
        assert (np.diff(chosen[:, 0]) > 0).all()
        assert np.diff(chosen[:, 0], append=max(count - length, 0)).max(initial=0) <= max(stride, length)
        seen = np.zeros(count + stride + length, bool)
        for window in chosen:
            seen[window[0] : window[0] + max(length, stride)] = True
        assert seen[:count].all()


def test_preprocessing_is_the_formula():
    images = RNG.integers(0, 256, (2, 256, 300, 3), np.uint8)
    made = preprocess.Preprocess(224, *preprocess.IMAGENET, short_side=256)(images)
    cut = images[:, 16:240, 38:262].astype(np.float64) / 255
    expected = (cut - preprocess.IMAGENET[0]) / np.array(preprocess.IMAGENET[1])
    np.testing.assert_allclose(made, expected.transpose(0, 3, 1, 2), atol=1e-5)
    swapped = faces.VGGFACE2_PREPROCESS(images[:, :224, :224])
    np.testing.assert_allclose(swapped[:, 0], images[:, :224, :224, 2] - 91.4953, atol=1e-4)
    assert np.ptp(preprocess.Preprocess(8, *preprocess.CENTRED)(images)) <= 2.0


@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (500, 3), (224, 224), (1000, 700)])
@pytest.mark.parametrize("squash", [False, True])
def test_preprocessing_takes_any_size(shape, squash):
    images = np.full((1, *shape, 3), 200, np.uint8)
    for short_side in (0, 256):
        made = preprocess.Preprocess(224, *preprocess.CENTRED, short_side=short_side, squash=squash)(images)
        assert made.shape == (1, 3, 224, 224)
        np.testing.assert_allclose(made, 200 / 127.5 - 1, atol=1e-5)


def test_squashing_shows_the_whole_picture():
    images = np.zeros((1, 100, 400, 3), np.uint8)
    images[:, :, 200:] = 255
    made = preprocess.Preprocess(50, *preprocess.CENTRED, squash=True)(images)
    np.testing.assert_allclose(made[0, :, :, :24], -1, atol=1e-5)
    np.testing.assert_allclose(made[0, :, :, 26:], 1, atol=1e-5)


def naive_log_mel(samples):
    """Straight from the definition: a sum of sines per frequency, a triangle per band."""
    t = np.arange(400)
    hann = 0.5 * (1 - np.cos(2 * np.pi * t / 400))

    def mel(f):
        return 1127 * np.log(1 + f / 700)

    edges = [mel(125) + (mel(7500) - mel(125)) * i / 65 for i in range(66)]
    rows = []
    for start in range(0, len(samples) - 399, 160):
        piece = samples[start : start + 400] * hann
        size = [abs(np.sum(piece * np.exp(-2j * np.pi * k * t / 512))) for k in range(257)]
        row = []
        for band in range(64):
            low, middle, high = edges[band : band + 3]
            total = 0.0
            for k in range(1, 257):
                m = mel(k * 16000 / 512)
                total += size[k] * max(0.0, min((m - low) / (middle - low), (high - m) / (high - middle)))
            row.append(np.log(total + 0.01))
        rows.append(row)
    return np.array(rows)


def test_the_spectrogram_equals_its_definition():
    samples = RNG.normal(0, 0.3, 900).astype(np.float32)
    np.testing.assert_allclose(vggish.log_mel(samples), naive_log_mel(samples), atol=1e-4)
    assert vggish.log_mel(samples[:399]).shape == (0, 64)


def test_patches_of_pieces_are_the_patches_of_the_whole():
    samples = RNG.normal(0, 0.3, 3 * 15360).astype(np.float32)
    whole = vggish.patches(samples)
    assert whole.shape == (3, 1, 96, 64)
    pieces = np.concatenate([vggish.patches(samples[: 2 * 15360]), vggish.patches(samples[2 * 15360 :])])
    np.testing.assert_allclose(whole[:, :, :94], pieces[:, :, :94], atol=1e-5)


def test_vggish_gives_a_row_for_each_096_seconds(tmp_path, monkeypatch):
    small = sound_networks.VGGish(((0, 2), (3, 2), (6, 2), (8, 2), (11, 2), (13, 2)), 8, 128)
    monkeypatch.setattr(sound_networks, "VGGISH", small)
    store = WeightStore(tmp_path / "store")
    fill(store, tmp_path, "vggish", weight_shapes(small)[0])
    expert = vggish.VGGishExpert(store)
    assert expert.card.need == AudioNeed(16000)
    sound = RNG.normal(0, 0.1, 16000 * 5).astype(np.float32)
    track = expert.extract(Sound(sound, 16000, 57.6))
    np.testing.assert_allclose(track.times[:2], [[57.6, 58.56], [58.56, 59.52]])
    assert track.values.shape == (5, 128)
    short = expert.extract(Sound(sound[:8000], 16000))
    np.testing.assert_allclose(short.times, [[0.0, 0.5]])
    assert isinstance(expert.extract(Sound(sound[:8000], 16000, 57.6)), Absent)
    assert isinstance(expert.extract(Sound(sound[:100], 16000)), Absent)
    with pytest.raises(ValueError, match="16000"):
        expert.extract(Sound(sound, 22050))


def test_faces_are_cut_from_boxes_wherever_they_lie(monkeypatch):
    boxes = np.array([[10.0, 5.0, 30.0, 35.0], [-20.0, -20.0, 12.0, 8.0], [70.0, 50.0, 90.0, 80.0]])
    fed = []

    class FakeStore:
        def folder(self, name):
            return import_module("pathlib").Path(name)

        def file(self, name, output):
            return self.folder(name) / output

        def source_hash(self, name):
            return name

    class FakeNetwork:
        def __init__(self, path):
            pass

        def __call__(self, frames):
            fed.append(frames)
            return {"features": frames.mean((2, 3))}

    class Detected:
        def __init__(self, boxes):
            self.boxes = boxes

    monkeypatch.setattr(faces, "Network", FakeNetwork)
    monkeypatch.setattr(faces, "detect_faces", lambda detector, image: Detected(boxes))
    expert = faces.VGGFace2Expert(FakeStore())
    media = frames(2, 25.0, 40, 60)
    track = expert.extract(media)
    assert track.values.shape == (4, 3)  # the third box lies outside of the picture
    np.testing.assert_allclose(track.times[:, 0], [0, 0, 0.04, 0.04])
    by_hand = faces.VGGFACE2_PREPROCESS(media.images[1:, 5:35, 10:30])
    np.testing.assert_array_equal(fed[0][2], by_hand[0])
    monkeypatch.setattr(faces, "detect_faces", lambda detector, image: Detected(boxes[2:]))
    assert expert.extract(media) == Absent("no face found")
