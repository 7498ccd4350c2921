"""The zero-shot model equals the definition: unit frames, their mean, a cosine, shifted and scaled."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fake_backbone import ColourBackbone

from wordreel.backbones.config import HeadConfig
from wordreel.models.joint.other_rows import OtherRows
from wordreel.models.joint.text_tower import DIM, TextTower
from wordreel.models.similarity import alike, mixture
from wordreel.models.zero_shot import GAIN, LEVELS, WEIGHTS, ZeroShot
from wordreel.runtime.store import WeightStore
from wordreel.types import Clip, Track, Words


def frames(count=6, seed=0):
    values = np.random.default_rng(seed).normal(1, 1, (count, 3)).astype(np.float32)
    starts = np.arange(count, dtype=np.float64)
    return Track(values, np.stack([starts, starts + 1], axis=1))


def said():
    return Track.of_lines([Words("a red rose", 0.0, 3.0)])


@pytest.fixture(scope="module")
def model():
    return ZeroShot(WeightStore(), ColourBackbone(), "0" * 16)


def unit(x):
    return x / np.linalg.norm(x)


def join(first, second, share):
    """As `lab.checkpoints.export_backbone` joins CLIP2Video's two vectors."""
    return np.concatenate([share**0.5 * first, (1 - share) ** 0.5 * second], axis=-1)


def score(model, text, tracks, clips):
    (query,) = model.encode([text])
    vectors, available = model.embed(tracks, clips)
    return mixture(query.vectors[None], query.weights[None], vectors, available)[0]


def test_row_0_is_a_shifted_cosine_of_the_mean_frame(model):
    track, clip = frames(), Clip("x", 1.0, 3.5)
    rows = [1.0 * unit(track.values[1]), 1.0 * unit(track.values[2]), 0.5 * unit(track.values[3])]
    cosine = unit(sum(rows)) @ unit(np.array([1.0, 0.0, 0.0]))
    found = score(model, "red", {model.name: track}, [clip])
    assert found == pytest.approx([GAIN * (cosine - LEVELS["clip"])], abs=1e-5)


def test_a_whole_video_counts_every_frame_alike(model):
    track = frames(4)
    mean = unit(sum(unit(row) for row in track.values))
    found = score(model, "blue", {model.name: track}, [Clip("x", 0, 4, whole=True)])
    assert found == pytest.approx([GAIN * (mean[2] - LEVELS["clip"])], abs=1e-5)


def test_a_head_replaces_the_mean():
    """A fine-tuned backbone's head sees the frames of each clip, in order."""
    backbone, seen = ColourBackbone(), []

    def last(clips):
        seen.extend(len(clip) for clip in clips)
        return np.stack([unit(clip[-1]) for clip in clips])

    backbone.head = last
    model = ZeroShot(WeightStore(), backbone, "0" * 16)
    track = frames(5)
    clips = [Clip("x", 0, 2), Clip("x", 9, 10), Clip("x", 1, 5)]
    found = score(model, "red", {model.name: track}, clips)
    expected = [GAIN * (unit(track.values[at])[0] - LEVELS["clip"]) for at in (1, 4)]
    assert found[[0, 2]] == pytest.approx(expected, abs=1e-5)
    assert found[1] == 0
    assert seen == [2, 4]
    assert not model.embed({}, clips)[1].any()


def test_joined_vectors_of_a_clip2video_are_compared_whole():
    """Two cosines, of the mean and of the last frame; the reason compares frames with the first half."""

    class Joined(ColourBackbone):
        def texts(self, texts):
            rows = super().texts(texts)
            return join(unit(rows), unit(rows[:, ::-1]), 0.3)

    backbone = Joined()
    backbone.config = replace(backbone.config, head=HeadConfig(6))
    backbone.head = lambda clips: np.stack([join(unit(clip.mean(0)), unit(clip[-1]), 0.3) for clip in clips])
    model, track = ZeroShot(WeightStore(), backbone, "0" * 16), frames(4)
    cosines = unit(track.values.mean(0))[0], unit(track.values[-1])[2]
    found = score(model, "red", {model.name: track}, [Clip("x", 0, 4)])
    assert found == pytest.approx([GAIN * (0.3 * cosines[0] + 0.7 * cosines[1] - LEVELS["clip"])], abs=1e-5)
    (query,) = model.encode(["red"])
    best = int(np.argmax(track.values[:, 0] / np.linalg.norm(track.values, axis=1)))
    assert model.explain(query, {model.name: track}, Clip("x", 0, 4))["seen"][1] == (best, best + 1)


def test_other_rows_are_those_of_the_default_model(model):
    tracks = {model.name: frames(), "speech": said()}
    clips = [Clip("x", 0, 3), Clip("x", 4, 6)]
    vectors, available = model.embed(tracks, clips)
    store = WeightStore()
    rows, there = OtherRows(TextTower(store.root), store).embed(tracks, clips)
    np.testing.assert_array_equal(available[:, 1:], there)
    np.testing.assert_array_equal(vectors[:, 1:, :DIM], rows)
    assert not vectors[:, 1:, DIM:].any()
    assert available[:, 0].all()
    assert available[:, 1].tolist() == [True, False]
    assert vectors.shape == (2, len(WEIGHTS), model.dim)


def test_a_recording_without_pictures_has_no_row_0(model):
    vectors, available = model.embed({"speech": said()}, [Clip("x", 0, 3)])
    assert not available[0, 0]
    assert not vectors[0, 0].any()


def test_a_video_is_its_own_best_look_alike(model):
    one, two = {model.name: frames(5, 1)}, {model.name: frames(5, 2)}
    clip = [Clip("x", 0, 5, whole=True)]
    (a, there), (b, also) = model.embed(one, clip), model.embed(two, clip)
    weights = np.array(model.expert_weights, np.float32)
    assert alike(a, there, a, there, weights)[0, 0] == pytest.approx(1, abs=1e-5)
    assert alike(a, there, b, also, weights)[0, 0] < 1


def test_what_a_picture_lacks_gains_it_nothing(model):
    """Unrelated words score near 0 in every row, so that a clip with fewer rows does not rank higher."""
    level = LEVELS["clip"]
    unrelated = np.array([level, np.sqrt(1 - level**2), 0], np.float32)
    track = Track(unrelated[None], np.array([[0.0, 1.0]]))
    assert score(model, "red", {model.name: track}, [Clip("x", 0, 1)]) == pytest.approx([0], abs=1e-5)


def test_the_reason_is_the_second_that_fits_best(model):
    values = np.array([[0, 1, 0], [0.2, 1, 0], [1, 0.1, 0], [0, 0, 1]], np.float32)
    starts = np.arange(4.0)
    tracks = {model.name: Track(values, np.stack([starts, starts + 1], axis=1)), "speech": said()}
    (query,) = model.encode(["red"])
    explained = model.explain(query, tracks, Clip("x", 0, 4))
    assert explained["seen"] == ("the best frame", (2.0, 3.0))
    assert explained["speech"] == ("“a red rose”", (0.0, 3.0))
    assert model.explain(query, tracks, Clip("x", 0, 2))["seen"][1] == (1.0, 2.0)
    assert model.explain(query, tracks, Clip("x", 0, 0, whole=True))["seen"] == ("the picture", None)
    assert "seen" not in model.explain(query, {"speech": said()}, Clip("x", 0, 4))


def test_look_alikes_name_the_frame_of_the_other(model):
    starts = np.arange(3.0)
    times = np.stack([starts, starts + 1], axis=1)
    one = {model.name: Track(np.tile(np.array([[0, 0, 1]], np.float32), (3, 1)), times)}
    two = {model.name: Track(np.eye(3, dtype=np.float32), times)}
    clip = Clip("x", 0, 3)
    assert model.compare(one, clip, two, clip)["seen"] == ("the best frame", (2.0, 3.0))
    assert model.compare({}, clip, two, clip) == {}


def test_fingerprints_differ_with_the_backbone_and_the_expert():
    store = WeightStore()
    prints = {
        ZeroShot(store, ColourBackbone(), "0" * 16).fingerprint,
        ZeroShot(store, ColourBackbone(fingerprint="b" * 16), "0" * 16).fingerprint,
        ZeroShot(store, ColourBackbone(), "1" * 16).fingerprint,
        ZeroShot(store, ColourBackbone(family="siglip"), "0" * 16).fingerprint,
    }
    assert len(prints) == 4
