"""`wordreel evaluate`, `compare`, `results` and the `--plot` flags on similarity matrices."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import typer
from tests.cli.test_qbnorm import asked, shell

from wordreel.cli.evaluate_inputs import Norm
from wordreel.errors import EvaluationError
from wordreel.evaluate.ranks import recall
from wordreel.evaluate.results import BEGIN, END
from wordreel.evaluate.retrieval import arrange, text_to_video_ranks, video_to_text_ranks


@pytest.fixture
def sims(tmp_path):
    rng = np.random.default_rng(0)
    right = np.repeat(np.eye(20), 3, axis=0)
    hubs = np.linspace(0, 0.5, 20)
    for name, strength in (("a", 0.4), ("b", 0.9)):
        values = rng.normal(size=(60, 20)) * 0.4 + strength * right + hubs
        np.save(tmp_path / f"{name}.npy", (values / 4).astype(np.float32))
    np.save(tmp_path / "bank.npy", ((rng.normal(size=(200, 20)) * 0.4 + hubs) / 4).astype(np.float32))
    np.save(tmp_path / "mask.npy", rng.random((20, 3)) < 0.8)
    (tmp_path / "counts.txt").write_text(" ".join(["2", "4"] * 10))
    return tmp_path


@pytest.mark.parametrize("v2t", ["ce", "clip"])
@pytest.mark.parametrize("how", ["even", "each", "counts", "mask"])
def test_figures_are_those_of_the_library(sims, v2t, how):
    matrix = np.load(sims / "a.npy")
    words, counts, mask = [], None, None
    if how == "each":
        words = ["--captions-per-video", 3]
    elif how == "counts":
        words, counts = ["--counts", sims / "counts.txt"], np.array([2, 4] * 10)
    elif how == "mask":
        words, mask = ["--mask", sims / "mask.npy"], np.load(sims / "mask.npy")
    captions = arrange(20, 60, counts, mask)
    facts = asked("evaluate", sims / "a.npy", "--v2t", v2t, *words)
    texts, videos = facts["runs"]
    slow = recall(text_to_video_ranks(matrix, captions))
    assert texts["figures"]["R1"] == slow.r1
    assert texts["figures"]["MnR"] == slow.mean_rank
    assert texts["figures"]["Rsum"] == slow.rsum
    other = recall(video_to_text_ranks(matrix, captions, protocol=v2t))
    assert (videos["protocol"], videos["figures"]["MnR"]) == (v2t, other.mean_rank)


def test_one_direction_and_a_bank(sims):
    facts = asked(
        "evaluate", sims / "a.npy", "--direction", "t2v", "--bank", sims / "bank.npy", "--method", "is"
    )
    plain, after = facts["runs"]
    assert plain["postprocessing"] == "none"
    assert after["postprocessing"] == "querybank(bank.npy, 200, 20)"
    same = asked("qbnorm", "--bank", sims / "bank.npy", "--test", sims / "a.npy", "--method", "is")
    assert after["figures"]["MnR"] == same["after"]["MnR"]
    assert after["hubness"] == same["hubness"]["after"]
    assert facts["measured"]["normalisation"] == {"method": "is", "parameters": {"beta": 20.0}}
    seen = asked("evaluate", sims / "a.npy", "--bank", sims / "a.npy")
    assert seen["runs"][-1]["postprocessing"] == "transductive"


def test_several_seeds(sims):
    facts = asked(
        "evaluate", sims / "a.npy", sims / "b.npy", "--out", sims / "out" / "both", "--seed", 0, "--seed", 1
    )
    each = [asked("evaluate", sims / f"{name}.npy") for name in "ab"]
    for place, run in enumerate(facts["runs"]):
        values = [one["runs"][place]["figures"]["R1"] for one in each]
        assert run["figures"]["R1"] == pytest.approx(np.mean(values))
        assert run["deviation"]["R1"] == pytest.approx(np.std(values, ddof=1))
    assert [entry["name"] for entry in facts["inputs"]] == ["a.npy", "b.npy"]
    table = (sims / "out" / "both.md").read_text()
    mean, apart = (facts["runs"][0][key]["R1"] for key in ("figures", "deviation"))
    assert f"| {mean:.1f} ± {apart:.1f} |" in table
    assert not (sims / "out" / "both.html").exists()
    assert f"{mean:.1f} ± {apart:.1f}" in shell("results", sims / "out").stdout
    np.save(sims / "small.npy", np.eye(5, dtype=np.float32))
    with pytest.raises(EvaluationError, match="different numbers"):
        shell("evaluate", sims / "a.npy", sims / "small.npy")
    shell("evaluate", sims / "a.npy", "captions.json", code=2)


def test_facts_say_how_they_were_made(sims):
    import hashlib

    facts = asked("evaluate", sims / "a.npy", "--seed", 3, "--title", "Mine")
    digest = hashlib.sha256((sims / "a.npy").read_bytes()).hexdigest()
    assert facts["inputs"] == [{"what": "similarities", "name": "a.npy", "sha256": digest}]
    assert (facts["seeds"], facts["title"]) == ([3], "Mine")
    assert set(facts["versions"]) == {"wordreel", "python", "numpy"}
    assert str(sims) not in json.dumps(facts)


def test_options_that_do_not_belong_are_refused(sims, tmp_path):
    shell("evaluate", sims / "a.npy", "--ids", "x.txt", code=2)
    shell("evaluate", sims / "a.npy", "--save", tmp_path / "x.npy", code=2)
    shell("evaluate", "captions.json", "--mask", sims / "mask.npy", code=2)
    shell("evaluate", "captions.json", "--save", tmp_path / "x.txt", code=2)
    with pytest.raises(typer.BadParameter, match="number or auto"):
        Norm("bank.npy", None, "dis", "many").made()


def test_compare_results_and_matrices_alike(sims):
    for name in "ab":
        shell("evaluate", sims / f"{name}.npy", "--out", sims / "out" / name)
    files = asked("compare", sims / "out" / "a", sims / "out" / "b", "--samples", 500)
    matrices = asked("compare", sims / "a.npy", sims / "b.npy", "--samples", 500)
    assert files["compared"] == matrices["compared"]
    texts, videos = files["compared"]
    found = texts["figures"]["R1"]
    assert found["difference"] == pytest.approx(found["b"] - found["a"])
    assert found["low"] <= found["difference"] <= found["high"]
    assert found["low"] > 0
    assert found["p_value"] < 0.01
    assert (texts["groups"], videos["groups"]) == (20, 20)
    assert texts["postprocessing"] == {"a": "none", "b": "none"}
    shown = shell("compare", sims / "out" / "a", sims / "out" / "b", "--samples", 100).stdout
    assert "post-processing A: none, B: none" in shown
    assert "95% interval" in shown


def test_compare_with_itself_finds_nothing(sims):
    (texts, _) = asked("compare", sims / "a.npy", sims / "a.npy", "--samples", 100)["compared"]
    assert {f["difference"] for f in texts["figures"].values()} == {0}
    assert {f["p_value"] for f in texts["figures"].values()} == {1}


def test_compare_names_post_processing_of_both(sims):
    shell("evaluate", sims / "a.npy", "--bank", sims / "bank.npy", "--out", sims / "out" / "a")
    facts = asked("compare", sims / "out" / "a", sims / "out" / "a", "--run-b", 3, "--samples", 100)
    assert facts["compared"][0]["postprocessing"] == {"a": "none", "b": "querybank(bank.npy, 200, 20)"}


def test_compare_refuses_other_galleries(sims):
    np.save(sims / "small.npy", np.eye(5, dtype=np.float32))
    with pytest.raises(EvaluationError, match="20 and 5 videos"):
        shell("compare", sims / "a.npy", sims / "small.npy")


def test_results_write_and_check(sims):
    shell("evaluate", sims / "a.npy", "--out", sims / "kept" / "a", "--title", "First | one")
    (sims / "kept" / "other.json").write_text("[]")
    readme = sims / "kept" / "README.md"
    readme.write_text(f"# Mine\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    shell("results", sims / "kept", "--check", code=1)
    shell("results", sims / "kept", "--write")
    shell("results", sims / "kept", "--check")
    text = readme.read_text()
    made = shell("results", sims / "kept").stdout
    assert made in text
    assert text.startswith("# Mine\n")
    assert text.endswith("\nafter\n")
    assert "First \\| one" in text
    assert "| a | – | text → video | none | 60 | 20 |" in text
    readme.write_text("no marks")
    with pytest.raises(EvaluationError, match="marks are missing"):
        shell("results", sims / "kept", "--write")
    (sims / "empty").mkdir()
    with pytest.raises(EvaluationError, match="no results"):
        shell("results", sims / "empty")


def test_the_committed_tables_are_what_the_results_say():
    folder = Path(__file__).parents[2] / "results"
    shell("results", folder, "--check")


def drawn(path):
    root = ElementTree.fromstring(path.read_text())  # noqa: S314 - our own
    return " ".join(child.text or "" for child in root.iter())


def test_plots(sims):
    facts = asked("hubness", sims / "a.npy", "--plot", sims / "one.svg")
    assert f"skewness {facts['skewness']:.2f}" in drawn(sims / "one.svg")
    facts = asked("qbnorm", "--bank", sims / "bank.npy", "--test", sims / "a.npy", "--plot", sims / "two.svg")
    text = drawn(sims / "two.svg")
    for side in ("before", "after"):
        assert f"{side}: skewness {facts['hubness'][side]['skewness']:.2f}" in text
    shell("hubness", sims / "a.npy", "--plot", sims / "one.png", code=2)
