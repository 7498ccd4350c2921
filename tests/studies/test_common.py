import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest
from common import (
    T2V,
    V2T,
    Facts,
    Weights,
    captions_of,
    measured,
    parse_weights,
    parser,
    plain,
    ranks_with,
    sample,
    shown,
    summary,
    validated,
)

from wordreel.hubness import make_method
from wordreel.hubness.beta import GRID
from wordreel.models.joint.adapter import FILE
from wordreel.retrieval.caption_ranks import Captions, text_to_video, video_to_text
from wordreel.retrieval.metrics import retrieval_metrics


@pytest.fixture
def rows():
    """Captions `[40, 9]` of 9 videos, and a bank of 30: video 0 is a hub."""
    rng = np.random.default_rng(3)
    owner = np.sort(rng.integers(0, 9, 40))
    sims = rng.normal(0, 0.2, (40, 9)).astype(np.float32)
    sims[np.arange(40), owner] += 0.2
    bank = rng.normal(0, 0.2, (30, 9)).astype(np.float32)
    sims[:, 0] += 0.2
    bank[:, 0] += 0.2
    return sims, Captions(9, owner, np.ones(40, bool)), bank


@pytest.mark.parametrize("method", ["none", "dis", "is", "csls"])
def test_the_fast_figures_are_those_of_the_full_measurement(rows, method):
    sims, captions, bank = rows
    for direction, test, against in (
        (T2V, sims, bank),
        (V2T, sims.T, np.ones((5, 40), np.float32) * sims[:5, :1]),
    ):
        test, against = np.ascontiguousarray(test), np.ascontiguousarray(against)
        fast = measured(make_method(method), against, test, captions, direction)
        slow = measured(make_method(method), against, test, captions, direction, hubness=True)
        assert fast.recall == slow.recall
        assert fast.skewness is None
        assert slow.skewness is not None


def test_plain_figures_are_those_of_the_published_protocols(rows):
    sims, captions, _ = rows
    assert plain(sims, captions).recall == text_to_video(sims, captions)
    assert plain(np.ascontiguousarray(sims.T), captions, V2T).recall == video_to_text(sims, captions)


def test_dis_by_hand(rows):
    sims, captions, bank = rows
    offset = np.log(np.exp(20.0 * bank.astype(np.float64)).sum(axis=0)) / 20
    opened = np.isin(sims.argmax(axis=1), bank.argmax(axis=1))
    ranks = []
    for row, gate, right in zip(sims.astype(np.float64), opened, captions.owner, strict=True):
        held = row - offset if gate else row
        ranks.append(1 + int((held > held[right]).sum()))
    assert ranks_with(make_method("dis"), bank, sims, captions).tolist() == ranks


def test_beta_is_the_one_with_the_best_recall_then_mean_rank(rows):
    sims, captions, bank = rows
    for method in ("dis", "is"):
        tried = []
        for beta in GRID:
            ranks = ranks_with(make_method(method, beta=beta), bank, sims, captions)
            tried.append((-np.mean(ranks == 1), np.mean(ranks), beta))
        assert validated(method, bank, sims, captions) == min(tried)[2]


def test_a_summary_is_mean_and_deviation_of_a_sample(rows):
    sims, captions, bank = rows
    runs = [
        plain(sims, captions, hubness=True),
        measured(make_method("is"), bank, sims, captions, hubness=True),
    ]
    found = summary(runs)
    r1 = [run.recall.r1 for run in runs]
    assert found["mean"]["r1"] == pytest.approx(sum(r1) / 2)
    assert found["deviation"]["r1"] == pytest.approx(abs(r1[0] - r1[1]) / np.sqrt(2))
    assert found["skewness"] == pytest.approx(np.mean([run.skewness for run in runs]))
    assert "corrected" not in found  # neither has a gate
    assert "deviation" not in summary(runs[:1])
    assert shown(summary(runs[:1]), "r1") == f"{r1[0]:.1f}"


def test_draws_differ_and_can_be_made_again():
    assert sample(100, 10, 1).tolist() == sample(100, 10, 1).tolist() != sample(100, 10, 2).tolist()
    assert len(set(sample(100, 10, 1).tolist())) == 10


def test_weights_have_labels():
    assert parse_weights(None) == [Weights("default", FILE)]
    assert parse_weights(["without MSVD=a=b.safetensors"])[0].label == "without MSVD=a"


def test_captions_by_split(tmp_path):
    for name, captions in (
        ("msvd", {"a": ["one"], "b": ["two", "three"], "c": ["four"]}),
        ("flickr8k", {"train": {"p": ["x"]}, "dev": {"q": ["y"]}}),
        ("msrvtt", {"v": ["z"]}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "captions.json").write_text(json.dumps(captions))
    lists = {"official": {"train": ["b", "gone"], "val": ["c"], "test": ["a"]}}
    (tmp_path / "msvd" / "splits.json").write_text(json.dumps(lists))
    found = captions_of(tmp_path, "msvd")
    assert found == {"train": {"b": ["two", "three"]}, "val": {"c": ["four"]}, "test": {"a": ["one"]}}
    assert captions_of(tmp_path, "flickr8k")["dev"] == {"q": ["y"]}
    assert captions_of(tmp_path, "msrvtt") == {"all": {"v": ["z"]}}


def test_what_is_written_tells_no_places(tmp_path, capsys):
    (tmp_path / "data" / "msvd").mkdir(parents=True)
    (tmp_path / "data" / "msvd" / "captions.json").write_text("{}")
    weights = tmp_path / "secret" / "seed0" / "joint.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"123")
    given = [
        "--data",
        str(tmp_path / "data"),
        "--msvd",
        str(tmp_path / "m.lib"),
        "--out",
        str(tmp_path / "out"),
    ]
    arguments = parser("words", "test").parse_args(given)
    facts = Facts("test", arguments, [Weights("default", weights)])
    weights.write_bytes(b"456")  # changed while the study ran
    facts.used("default", SimpleNamespace(experts=("a", "b"), expert_weights=(1, 0.5), fingerprint="f"))
    facts.write({"rows": [1]}, "# Title", {"plot": "<svg/>"})
    written = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert str(tmp_path) not in written
    kept = json.loads((tmp_path / "out" / "test.json").read_text())
    assert kept["rows"] == [1]
    assert kept["weights"][0]["name"] == "seed0"
    assert kept["weights"][0]["sha256"] == hashlib.sha256(b"123").hexdigest()
    assert kept["models"] == [{"label": "default", "fingerprint": "f", "rows": {"a": 1.0, "b": 0.5}}]
    assert "--weights" in (tmp_path / "out" / "README.md").read_text()
    assert "wrote" in capsys.readouterr().err


def test_recall_of_ranks_with_is_that_of_measured(rows):
    sims, captions, bank = rows
    found = measured(make_method("dis"), bank, sims, captions).recall
    assert found == retrieval_metrics(ranks_with(make_method("dis"), bank, sims, captions))
