"""The NumPy side of the default model equals the torch module that trains it."""

import numpy as np
import pytest

from wordreel.models.reel.checkpoint import Checkpoint, from_small, load, save, to_small
from wordreel.models.reel.shape import DIM, SEEN, TEXT
from wordreel.models.reel.stretches import scaled, stretches
from wordreel.models.reel.tower import caption, video
from wordreel.types import Clip, Track

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def tower():
    from wordreel.training.reel.module import Tower
    from wordreel.training.reel.settings import Settings

    torch.manual_seed(0)
    torch.set_num_threads(1)
    made = Tower(Settings()).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return made


@pytest.fixture(scope="module")
def weights(tower):
    return {name: p.detach().numpy() for name, p in tower.named_parameters() if name != "sharpness"}


def some_clips(rng, count):
    """Clips with any experts and any number of tokens, one with none at all."""

    def one():
        return {
            seen.name: rng.normal(size=(int(rng.integers(1, seen.most + 1)), seen.dim)).astype(np.float32)
            for seen in SEEN
            if rng.random() < 0.6
        }

    return [{}, *(one() for _ in range(count - 1))]


def padded(clips):
    tokens = {seen.name: torch.zeros(len(clips), seen.most, seen.dim) for seen in SEEN}
    kept = {seen.name: torch.zeros(len(clips), seen.most, dtype=torch.bool) for seen in SEEN}
    for row, clip in enumerate(clips):
        for name, values in clip.items():
            tokens[name][row, : len(values)] = torch.from_numpy(values)
            tokens[name][row, len(values) :] = 7.0  # padding must not be looked at
            kept[name][row, : len(values)] = True
    return tokens, kept


def test_video_side(tower, weights):
    clips = some_clips(np.random.default_rng(0), 12)
    with torch.no_grad():
        want = tower.video(*padded(clips)).numpy()
    np.testing.assert_allclose(video(weights, clips), want, atol=3e-6)


def test_a_clip_does_not_depend_on_its_neighbours(weights):
    clips = some_clips(np.random.default_rng(1), 6)
    whole = video(weights, clips)
    for row, clip in enumerate(clips):
        np.testing.assert_allclose(video(weights, [clip])[0], whole[row], atol=1e-5)


def test_caption_side(tower, weights):
    sentences = np.random.default_rng(2).normal(size=(9, TEXT)).astype(np.float32)
    with torch.no_grad():
        want = tower.text(torch.from_numpy(sentences)).numpy()
    found = caption(weights, sentences)
    np.testing.assert_allclose(found, want, atol=3e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert found.shape == (9, DIM)


def rounded(arrays):
    """What `save` and `load` make of arrays."""
    return {
        name: from_small(*to_small(array))
        if array.ndim == 2 and array.size > 10_000
        else array.astype(np.float16).astype(np.float32)
        for name, array in arrays.items()
    }


def test_a_checkpoint_comes_back_rounded(weights, tmp_path):
    rng = np.random.default_rng(3)
    layers = {"encoder.layer.0.output.dense.weight": rng.normal(size=(384, 1536)).astype(np.float32)}
    scale = {"motion.mean": rng.normal(size=1024).astype(np.float32)}
    save(tmp_path / "m.safetensors", Checkpoint(weights, layers, scale, {"note": "x"}))
    back = load(tmp_path / "m.safetensors")
    assert back.card == {"format": 1, "note": "x"}
    for part, given in (("tower", weights), ("encoder", layers), ("scale", scale)):
        want = rounded(given)
        assert set(getattr(back, part)) == set(want)
        for name, array in want.items():
            np.testing.assert_array_equal(getattr(back, part)[name], array)
            assert np.abs(array - given[name]).max() <= np.abs(given[name]).max() / 127
    clips = some_clips(np.random.default_rng(4), 5)
    agree = (video(back.tower, clips) * video(weights, clips)).sum(axis=1)
    assert agree.min() > 0.999


def test_damaged_checkpoints_are_refused(tmp_path):
    from wordreel.errors import WeightsCorrupt, WeightsMissing

    with pytest.raises(WeightsMissing, match="train default"):
        load(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"\x80\x04nothing")
    with pytest.raises(WeightsCorrupt, match="install wordreel again"):
        load(tmp_path / "bad")


def test_stretches_average_rows_of_the_clip():
    values = np.arange(10, dtype=np.float32)[:, None]
    times = np.stack([np.arange(10.0), np.arange(1.0, 11.0)], axis=1)
    track = Track(values, times)
    np.testing.assert_allclose(stretches(track, None, 4)[:, 0], [1, 4, 6.5, 8.5])
    part = Clip("c", 2.5, 4.0, False)
    np.testing.assert_allclose(stretches(track, part, 4)[:, 0], [2, 3])
    assert stretches(track, Clip("c", 20.0, 30.0, False), 4) is None
    np.testing.assert_allclose(stretches(track, Clip("c", 0.0, 10.0, True), 1)[:, 0], [4.5])
    np.testing.assert_allclose(
        scaled(np.array([[-4.0, 9.0]]), np.array([1.0, 1]), np.array([2.0, 1])), [[-1.5, 2]]
    )
