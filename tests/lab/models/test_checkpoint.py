"""Checkpoint folders, and trained models under the protocol that search uses."""

import json
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models import twins  # noqa: E402
from tests.lab.models.small import CONFIGS, model  # noqa: E402

from wordreel.errors import WeightsCorrupt, WeightsMissing  # noqa: E402
from wordreel.lab.models import checkpoint  # noqa: E402
from wordreel.lab.models.collate import ExpertRows, choose_rows, clip_rows, collate  # noqa: E402
from wordreel.lab.models.config import CEConfig, ExpertConfig, MMTConfig, TextConfig  # noqa: E402
from wordreel.types import Clip, Track, Words  # noqa: E402

EXPERTS = (ExpertConfig("motion", 5), ExpertConfig("speech", 4, "vlad", 2), ExpertConfig("appearance", 6))
CONFIG = CEConfig(EXPERTS, TextConfig("vectors", 3, "vlad", 2, source="word2vec:words.txt"), 8)
TIMED = tuple(ExpertConfig(e.name, e.dim, max_tokens=4, type_id=n + 1) for n, e in enumerate(EXPERTS))
MMT_CONFIG = MMTConfig(
    TIMED, TextConfig("vectors", 3, "mean", source="word2vec:words.txt"), 8, layers=1, heads=2, inner=8
)


@pytest.fixture(params=[CONFIG, MMT_CONFIG], ids=["ce", "mmt"])
def folder(tmp_path, request):
    place = tmp_path / "model"
    checkpoint.save(place, twins.stir(model(request.param)), "pets", {"data": "toy", "seed": 3})
    (place / "words.txt").write_text("dog 1 0 0\ncat 0 1 0\nruns 0 0 1\n")
    return place


@pytest.fixture
def tracks():
    rng = np.random.default_rng(0)

    def track(dim, count, words=()):
        times = np.stack([np.arange(count), np.arange(count) + 1], 1) * 2.0
        return Track(rng.normal(size=(count, dim)).astype(np.float32), times, words)

    return {
        "motion": track(5, 6),
        "speech": track(4, 2, (Words("hello there", 0.5, 1.5),)),
        "unrelated": track(9, 3),
    }


CLIPS = [Clip("x", 0, 12, whole=True), Clip("x", 0.0, 3.0), Clip("x", 5.0, 9.0), Clip("x", 90.0, 99.0)]


def test_a_folder_gives_back_what_was_saved(folder):
    module, facts = checkpoint.load_module(folder)
    fresh = twins.stir(model(module.config))
    assert facts["name"] == "pets"
    assert facts["training"] == {"data": "toy", "seed": 3}
    assert json.loads((folder / "model.json").read_text()) == facts
    torch.testing.assert_close(module.state_dict(), fresh.state_dict())
    assert not module.training
    assert all(value.device.type == "cpu" for value in module.state_dict().values())


def test_clips_are_embedded_from_the_rows_they_share_time_with(folder, tracks):
    found = checkpoint.TrainedModel(folder)
    assert found.experts == ("motion", "speech", "appearance")
    vectors, available = found.embed(tracks, CLIPS)
    assert vectors.shape == (4, 3, 8)
    assert vectors.dtype == np.float32
    keeps = isinstance(found._module.config, MMTConfig)
    wanted = [[True, True, keeps], [True, True, keeps], [True, keeps, keeps], [False] * 3]
    assert available.tolist() == wanted
    assert not vectors[~available].any()
    for number, clip in enumerate(CLIPS):
        alone, _ = found.embed(tracks, [clip])
        np.testing.assert_allclose(alone[0], vectors[number], atol=1e-5)
    cut = {
        name: Track(track.values[2:5], track.times[2:5] - 5.0 + 5.0)
        for name, track in tracks.items() if name == "motion"
    }  # fmt: skip
    np.testing.assert_allclose(found.embed(cut, [CLIPS[2]])[0][0], vectors[2], atol=1e-5)


def test_queries_carry_text_vectors_and_weights(folder):
    found = checkpoint.TrainedModel(folder)
    queries = found.encode(["a dog runs", "cat", ""])
    assert [query.text for query in queries] == ["a dog runs", "cat", ""]
    for query in queries:
        assert query.vectors.shape == (3, 8)
        np.testing.assert_allclose(query.weights.sum(), 1, rtol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(query.vectors, axis=1), 1, rtol=1e-5)
    alone = found.encode(["cat"])[0]
    np.testing.assert_allclose(alone.vectors, queries[1].vectors, atol=1e-6)
    assert found.encode([]) == []


def test_explain_quotes_or_weighs(folder, tracks):
    found = checkpoint.TrainedModel(folder)
    query = found.encode(["dog"])[0]
    said = found.explain(query, tracks, CLIPS[1])
    assert set(said) == {"motion", "speech"}
    assert said["speech"][0] == "“hello there”"
    assert said["motion"][0].endswith("% of the query's attention")
    assert found.explain(query, tracks, CLIPS[3]) == {}


def test_the_fingerprint_follows_weights_description_and_words(folder, tmp_path):
    first = checkpoint.TrainedModel(folder).fingerprint
    assert checkpoint.TrainedModel(folder).fingerprint == first
    module, _ = checkpoint.load_module(folder)
    (folder / "words.txt").write_text("dog 1 0 0\n")
    assert checkpoint.TrainedModel(folder).fingerprint != first
    (folder / "words.txt").write_text("dog 1 0 0\ncat 0 1 0\nruns 0 0 1\n")
    checkpoint.save(folder, module, "pets", {"data": "toy", "seed": 4})
    second = checkpoint.TrainedModel(folder).fingerprint
    with torch.no_grad():
        next(module.parameters())[0] += 1e-3
    checkpoint.save(folder, module, "pets", {"data": "toy", "seed": 4})
    assert len({first, second, checkpoint.TrainedModel(folder).fingerprint}) == 3


def test_damage_is_told(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(WeightsCorrupt, match="damaged"):
        checkpoint.TrainedModel(folder)
    path.write_bytes(b"not a model")
    with pytest.raises(WeightsCorrupt, match="not a model"):
        checkpoint.TrainedModel(folder)
    path.unlink()
    with pytest.raises(WeightsMissing, match="not a trained model"):
        checkpoint.TrainedModel(folder)


def test_a_kill_between_the_two_files_leaves_a_whole_model(folder, monkeypatch):
    module, _ = checkpoint.load_module(folder)
    with torch.no_grad():
        next(module.parameters())[0] += 1

    def killed(path, data, real=checkpoint.atomic_write):
        if path.name == "model.json":
            raise KeyboardInterrupt
        real(path, data)

    monkeypatch.setattr(checkpoint, "atomic_write", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(folder, module, "pets")
    torch.testing.assert_close(checkpoint.load_module(folder)[0].state_dict(), module.state_dict())


@pytest.mark.parametrize("name", CONFIGS)
def test_every_kind_of_model_can_be_kept(tmp_path, name):
    module = twins.stir(model(CONFIGS[name]))
    checkpoint.save(tmp_path, module, name)
    torch.testing.assert_close(checkpoint.load_module(tmp_path)[0].state_dict(), module.state_dict())


def test_rows_of_a_clip_are_timed_from_its_start(tracks):
    rows = clip_rows(tracks["motion"], Clip("x", 5.0, 9.0))
    np.testing.assert_array_equal(rows.values, tracks["motion"].values[2:5])
    assert rows.times.tolist() == [0.0, 2.0, 4.0]
    assert clip_rows(tracks["motion"], CLIPS[3]) is None


def test_choosing_rows():
    assert choose_rows(3, 5).tolist() == [0, 1, 2]
    assert choose_rows(9, 0).tolist() == list(range(9))
    fixed = choose_rows(50, 8)
    assert len(set(fixed)) == 8
    assert (np.diff(fixed) > 0).all()
    assert (
        fixed.tolist()
        == choose_rows(50, 8).tolist()
        == sorted(np.random.RandomState(0).choice(50, 8, replace=False))
    )
    chance = np.random.default_rng(0)
    assert choose_rows(50, 8, chance).tolist() != choose_rows(50, 8, chance).tolist()


def test_batches_pool_before_they_leave_rows_out():
    values = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    batch = collate([{"motion": ExpertRows(values)}, {"motion": None}, {}], MMT_CONFIG)
    assert batch["motion"].values.shape == (3, 4, 5)
    np.testing.assert_array_equal(batch["motion"].pooled[0], values.max(0))
    assert batch["motion"].mask.sum(1).tolist() == [4, 0, 0]
    assert torch.isnan(batch["motion"].times).all()
    assert batch["speech"].values.shape == (3, 1, 4)
    assert collate([{}], MMT_CONFIG, fixed=True)["speech"].values.shape == (1, 4, 4)
    first = collate([{"speech": ExpertRows(values[:, :4])}], CONFIG)["speech"]
    assert first.pooled is None
    assert first.values.shape == (1, 20, 4)


def test_listing_models_needs_no_torch():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "import wordreel.models.base, wordreel.models.joint.model, wordreel.models.similarity\n"
        "from wordreel.cli.app import app\n"
        "result = CliRunner().invoke(app, ['models', '--json'])\n"
        "assert result.exit_code == 0, result.output\n"
        "assert 'torch' not in sys.modules\n"
        "print(result.output)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["mmt"]["parameters"] == 133_357_063
    assert rows["ce"]["parameters"] == 183_448_607


def test_listing_models_for_people():
    from typer.testing import CliRunner

    from wordreel.cli.app import app

    plain = CliRunner().invoke(app, ["models"]).output
    assert "400,410,129  Mixture of Embedding Experts" in plain
