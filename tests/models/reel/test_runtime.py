"""The NumPy runtime of the default model equals the torch module that is trained."""

import numpy as np
import pytest

from wordreel.errors import WeightsError
from wordreel.lab.models.registry import reel
from wordreel.models.reel.checkpoint import ReelCheckpoint, export, from_state, load
from wordreel.models.reel.runtime import embed_sentences, embed_videos
from wordreel.models.reel.segments import scaled, segments
from wordreel.runtime.quantise import dequantise, quantise
from wordreel.types import Clip, Track

torch = pytest.importorskip("torch")

CONFIG = reel()
WHOLE = Clip("content", 0.0, 10.0, True)


@pytest.fixture(scope="module")
def module():
    """The real size, with random weights, scales and biases."""
    from wordreel.lab.models.build import build
    from wordreel.lab.training.settings import StartSettings
    from wordreel.lab.training.start import init_weights

    torch.manual_seed(0)
    torch.set_num_threads(1)
    made = build(CONFIG).eval()
    init_weights(made, StartSettings("minilm"))
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.startswith("caption.words."):
                if name.startswith("caption.words.encoder.") and parameter.ndim > 1:
                    parameter.add_(0.01 * torch.randn_like(parameter))  # trained further
            elif parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
        made.fit_features({e.name: torch.randn(50, e.dim) ** 3 for e in CONFIG.experts if e.name != "speech"})
    return made


@pytest.fixture(scope="module")
def checkpoint(module):
    return from_state(CONFIG, {name: p.detach().numpy() for name, p in module.state_dict().items()})


@pytest.fixture(scope="module")
def weights(checkpoint):
    return checkpoint.tower


def some_clips(rng, count):
    """Clips with any experts and any number of tokens, one with none at all."""

    def one():
        return {
            expert.name: rng.normal(size=(int(rng.integers(1, expert.max_tokens + 1)), expert.dim)).astype(
                np.float32
            )
            for expert in CONFIG.experts
            if rng.random() < 0.6
        }

    return [{}, *(one() for _ in range(count - 1))]


def some_tracks(rng, count):
    """Tracks of videos with any experts, more rows than tokens in some."""
    videos = []
    for _ in range(count):
        tracks = {}
        for expert in CONFIG.experts:
            rows = int(rng.integers(0, 12))
            if rows:
                times = np.stack([np.arange(rows) * 0.8, np.arange(rows) * 0.8 + 0.8], axis=1)
                tracks[expert.name] = Track(
                    rng.normal(size=(rows, expert.dim)).astype(np.float32) ** 3, times
                )
        videos.append(tracks)
    return videos


def test_the_buffers_are_those_of_the_rows(module):
    rows = np.random.default_rng(0).normal(size=(30, 1280)).astype(np.float32)
    part = module.scaling[0]
    before = {name: value.clone() for name, value in part.state_dict().items()}
    part.fit(torch.from_numpy(rows))
    root = np.sign(rows) * np.sqrt(np.abs(rows))
    want = root.mean(axis=0).astype(np.float16), (root.std(axis=0) + 1e-3).astype(np.float16)
    for found, array in zip((part.mean, part.deviation), want, strict=True):
        np.testing.assert_allclose(found.numpy(), array.astype(np.float32), rtol=2e-3, atol=1e-6)
        assert np.array_equal(found.numpy(), found.numpy().astype(np.float16).astype(np.float32))
    np.testing.assert_allclose(
        part(torch.from_numpy(rows)).numpy(),
        scaled(rows, part.mean.numpy(), part.deviation.numpy()),
        rtol=1e-5,
        atol=1e-6,
    )
    part.load_state_dict(before)


def test_video_side(module, checkpoint):
    from wordreel.lab.models.collate import clip_rows, collate

    videos = [*some_tracks(np.random.default_rng(0), 12), {}]
    rows = [{name: clip_rows(track, WHOLE) for name, track in tracks.items()} for tracks in videos]
    batch = collate(rows, CONFIG)
    for part in batch.values():
        part.values[~part.mask] = 7.0  # padding must not be looked at
    with torch.no_grad():
        want = module.embed_videos(batch)
    clips = []
    for tracks in videos:
        clip = {}
        for expert in CONFIG.experts:
            if expert.name in tracks:
                values = segments(tracks[expert.name], WHOLE, expert.max_tokens)
                scale = (checkpoint.scale[f"{expert.name}.{part}"] for part in ("mean", "deviation"))
                clip[expert.name] = scaled(values, *scale)
        clips.append(clip)
    found = embed_videos(checkpoint.tower, CONFIG, clips)
    assert want.available[:, 0].tolist() == [bool(tracks) for tracks in videos]
    there = want.available[:, 0].numpy()
    np.testing.assert_allclose(found[there], want.vectors[:, 0].numpy()[there], atol=1e-5)


def test_a_clip_does_not_depend_on_its_neighbours(weights):
    clips = some_clips(np.random.default_rng(1), 6)
    whole = embed_videos(weights, CONFIG, clips)
    for row, clip in enumerate(clips):
        np.testing.assert_allclose(embed_videos(weights, CONFIG, [clip])[0], whole[row], atol=1e-5)


def test_text_head(module, weights):
    sentences = np.random.default_rng(2).normal(size=(9, CONFIG.text.out)).astype(np.float32)
    with torch.no_grad():
        want = torch.nn.functional.normalize(module.text_head(torch.from_numpy(sentences)), dim=-1).numpy()
    found = embed_sentences(weights, sentences)
    np.testing.assert_allclose(found, want, atol=3e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert found.shape == (9, CONFIG.dim)


TEXTS = ["a dog runs over the grass", "unbelievable!", "a man in a red shirt plays the guitar on a stage"]


def test_a_training_folder_and_its_export_answer_as_the_module_does(module, tmp_path):
    """The folder to 1e-5; the export, whose matrices are bytes, to a cosine of 0.99."""
    from wordreel.lab.models.batch import TokenBatch
    from wordreel.lab.models.checkpoint import save
    from wordreel.lab.models.collate import clip_rows, collate
    from wordreel.lab.models.text.tokenizers import open_tokenizer
    from wordreel.models.reel.model import Reel
    from wordreel.runtime.store import WeightStore

    tokens, mask = open_tokenizer(CONFIG.text).encode(TEXTS)
    videos = [tracks for tracks in some_tracks(np.random.default_rng(5), 8) if "appearance" in tracks]
    rows = [{name: clip_rows(track, WHOLE) for name, track in tracks.items()} for tracks in videos]
    with torch.no_grad():
        text = module.embed_queries(TokenBatch(torch.from_numpy(tokens), torch.from_numpy(mask)))
        video = module.embed_videos(collate(rows, CONFIG))
    save(tmp_path / "run", module, "mine", {"data": "x"})
    export(tmp_path / "small.safetensors", load(tmp_path / "run" / "model.safetensors"))
    assert (tmp_path / "small.safetensors").stat().st_size < 20_000_000
    for path, least in (("run/model.safetensors", 1 - 1e-6), ("small.safetensors", 0.99)):
        model = Reel(WeightStore(), tmp_path / path)
        assert (model.name, model.facts["training"]) == ("mine", {"data": "x"})
        found = np.stack([query.vectors[0] for query in model.encode(TEXTS)])
        shown = np.stack([model.embed(tracks, [WHOLE])[0][0, 0] for tracks in videos])
        for ours, theirs in ((found, text.vectors[:, 0]), (shown, video.vectors[:, 0])):
            assert (ours * theirs.numpy()).sum(axis=1).min() > least
            if path.startswith("run"):
                np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5)


def test_what_the_runtime_cannot_do_is_refused(module):
    from dataclasses import replace

    text = CONFIG.text
    for other in (
        replace(text, frozen_embeddings=False),
        replace(text, network=replace(text.network, layers=5)),
        replace(text, pool="cls"),
    ):
        with pytest.raises(WeightsError):
            from_state(replace(CONFIG, text=other), {})


def rounded(arrays):
    """What `export` and `load` make of arrays."""
    return {
        name: dequantise(*quantise(array))
        if array.ndim == 2 and array.size > 10_000
        else array.astype(np.float16).astype(np.float32)
        for name, array in arrays.items()
    }


def test_a_checkpoint_comes_back_rounded(weights, tmp_path):
    rng = np.random.default_rng(3)
    layers = {"encoder.layer.0.output.dense.weight": rng.normal(size=(384, 1536)).astype(np.float32)}
    scale = {"motion.mean": rng.normal(size=1024).astype(np.float32)}
    export(tmp_path / "m.safetensors", ReelCheckpoint(weights, layers, scale, {"note": "x"}))
    back = load(tmp_path / "m.safetensors")
    assert back.card == {"format": 1, "note": "x"}
    for part, given in (("tower", weights), ("encoder", layers), ("scale", scale)):
        want = rounded(given)
        assert set(getattr(back, part)) == set(want)
        for name, array in want.items():
            np.testing.assert_array_equal(getattr(back, part)[name], array)
            assert np.abs(array - given[name]).max() <= np.abs(given[name]).max() / 127
    clips = some_clips(np.random.default_rng(4), 5)
    agree = (embed_videos(back.tower, CONFIG, clips) * embed_videos(weights, CONFIG, clips)).sum(axis=1)
    assert agree.min() > 0.999


def test_damaged_checkpoints_are_refused(tmp_path):
    from wordreel.errors import WeightsCorrupt, WeightsMissing

    with pytest.raises(WeightsMissing, match="train default"):
        load(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"\x80\x04nothing")
    with pytest.raises(WeightsCorrupt, match="install wordreel again"):
        load(tmp_path / "bad")


def test_segments_average_rows_of_the_clip():
    values = np.arange(10, dtype=np.float32)[:, None]
    times = np.stack([np.arange(10.0), np.arange(1.0, 11.0)], axis=1)
    track = Track(values, times)
    np.testing.assert_allclose(segments(track, Clip("c", 0.0, 10.0, True), 4)[:, 0], [1, 4, 6.5, 8.5])
    part = Clip("c", 2.5, 4.0, False)
    np.testing.assert_allclose(segments(track, part, 4)[:, 0], [2, 3])
    assert segments(track, Clip("c", 20.0, 30.0, False), 4) is None
    np.testing.assert_allclose(segments(track, Clip("c", 0.0, 10.0, True), 1)[:, 0], [4.5])
    np.testing.assert_allclose(
        scaled(np.array([[-4.0, 9.0]]), np.array([1.0, 1]), np.array([2.0, 1])), [[-1.5, 2]]
    )
