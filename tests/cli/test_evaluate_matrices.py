"""`wordreel evaluate` of similarity matrices."""

import json

import numpy as np
import pytest
from tests.cli.invoke import shell, shell_json

from wordreel.errors import EvaluationError
from wordreel.retrieval.caption_ranks import arrange, text_to_video_ranks, video_to_text_ranks
from wordreel.retrieval.metrics import retrieval_metrics


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
    facts = shell_json("evaluate", "matrix", sims / "a.npy", "--v2t", v2t, *words)
    texts, videos = facts["runs"]
    slow = retrieval_metrics(text_to_video_ranks(matrix, captions))
    assert texts["figures"]["R1"] == slow.r1
    assert texts["figures"]["MnR"] == slow.mean_rank
    assert texts["figures"]["Rsum"] == slow.rsum
    other = retrieval_metrics(video_to_text_ranks(matrix, captions, protocol=v2t))
    assert (videos["protocol"], videos["figures"]["MnR"]) == (v2t, other.mean_rank)


def test_how_a_matrix_is_read_is_said_where_it_is_assumed(sims):
    assumed = "60 rows and 20 columns are read as 3 captions of each video"
    assert assumed in shell("evaluate", "matrix", sims / "a.npy").stderr
    assert shell("evaluate", "matrix", sims / "a.npy", "--captions-per-video", 3).stderr == ""


def test_one_direction_and_a_bank(sims):
    facts = shell_json(
        "evaluate",
        "matrix",
        sims / "a.npy",
        "--direction",
        "t2v",
        "--bank",
        sims / "bank.npy",
        "--method",
        "is",
    )
    plain, after = facts["runs"]
    assert plain["postprocessing"] == "none"
    assert after["postprocessing"] == "querybank(bank.npy, 200 queries, method=is, beta=20)"
    same = shell_json("qbnorm", "--bank", sims / "bank.npy", "--test", sims / "a.npy", "--method", "is")
    assert after["figures"]["MnR"] == same["after"]["MnR"]
    assert after["hubness"] == same["hubness"]["after"]
    assert facts["measured"]["normalisations"] == [
        {"direction": "t2v", "method": "is", "parameters": {"beta": 20.0}, "transductive": False}
    ]
    seen = shell_json("evaluate", "matrix", sims / "a.npy", "--bank", sims / "a.npy")
    assert seen["runs"][-1]["postprocessing"].startswith("transductive(the bank holds test queries")
    assert [run["transductive"] for run in seen["runs"]] == [False, False, True]


@pytest.mark.parametrize("v2t", ["ce", "clip"])
def test_several_methods_in_both_directions(sims, v2t):
    matrix = np.load(sims / "a.npy").astype(np.float64)
    rng = np.random.default_rng(5)
    videos = (rng.normal(size=(50, 60)) / 8).astype(np.float32)
    np.save(sims / "videos.npy", videos)
    words = ["--mask", sims / "mask.npy", "--v2t", v2t, "--bank", sims / "bank.npy"]
    words += ["--video-bank", sims / "videos.npy", "--method", "is", "--method", "test-is", "--method", "dsl"]
    facts = shell_json("evaluate", "matrix", sims / "a.npy", *words, "--beta", 20, "--beta", 30, "--beta", 40)
    captions = arrange(20, 60, None, np.load(sims / "mask.npy"))
    valid = captions.valid
    rows = [(run["direction"], run["transductive"]) for run in facts["runs"]]
    assert rows == [(way, late) for late in (False, False, True, True) for way in ("t2v", "v2t")]

    def softmax(bank, rows, beta):
        return np.exp(beta * rows) / np.exp(beta * bank).sum(axis=0)

    bank = np.load(sims / "bank.npy").astype(np.float64)
    wanted = []
    for texts, back in (
        (softmax(bank, matrix, 20), softmax(videos.astype(np.float64), matrix.T, 20)),
        (softmax(matrix[valid], matrix, 30), softmax(matrix.T, matrix.T, 30)),
        (matrix * softmax(matrix[valid], matrix, 40), matrix.T * softmax(matrix.T, matrix.T, 40)),
    ):
        wanted.append(retrieval_metrics(text_to_video_ranks(texts, captions)))
        wanted.append(retrieval_metrics(video_to_text_ranks(back.T, captions, protocol=v2t)))
    for run, slow in zip(facts["runs"][2:], wanted, strict=True):
        assert run["figures"]["MnR"] == pytest.approx(slow.mean_rank), run["postprocessing"]
        assert run["figures"]["R1"] == pytest.approx(slow.r1)
    assert facts["runs"][-1]["gallery"] == facts["runs"][1]["gallery"]
    shown = shell("evaluate", "matrix", sims / "a.npy", "--method", "dsl").stdout
    assert "transductive(uses all test queries, method=dsl, beta=100)" in shown
    assert "use all test queries" in " ".join(
        shell("evaluate", "matrix", "--help").stdout.replace("│", "").split()
    )
    shell("evaluate", "matrix", sims / "a.npy", "--method", "is", code=2)  # no bank
    shell("evaluate", "matrix", sims / "a.npy", *words, "--beta", 20, code=2)
    shell("evaluate", "matrix", sims / "a.npy", *words, "--export-trec", sims / "run", code=2)


def test_folds_are_test_sets_of_their_own(sims):
    matrix, bank = np.load(sims / "a.npy"), np.load(sims / "bank.npy")
    words = ["--bank", sims / "bank.npy", "--method", "is", "--method", "dsl", "--modality", "image"]
    facts = shell_json("evaluate", "matrix", sims / "a.npy", "--folds", 4, *words)
    each = []
    for n in range(4):
        np.save(sims / "part.npy", matrix[15 * n : 15 * n + 15, 5 * n : 5 * n + 5])
        np.save(sims / "bank.npy", bank[:, 5 * n : 5 * n + 5])
        each.append(shell_json("evaluate", "matrix", sims / "part.npy", *words)["runs"])
    for place, run in enumerate(facts["runs"]):
        values = [runs[place]["figures"]["R5"] for runs in each]
        assert run["figures"]["R5"] == pytest.approx(np.mean(values))
        assert run["deviation"]["R5"] == pytest.approx(np.std(values, ddof=1))
    assert (facts["measured"]["folds"], facts["measured"]["videos"]) == (4, 20)
    assert "text → image" in shell("evaluate", "matrix", sims / "part.npy", "--modality", "image").stdout
    with pytest.raises(EvaluationError, match="20 items cannot be cut into 3 folds"):
        shell("evaluate", "matrix", sims / "a.npy", "--folds", 3)
    shell("evaluate", "matrix", sims / "a.npy", sims / "b.npy", "--folds", 4, code=2)


def test_several_seeds(sims):
    facts = shell_json(
        "evaluate",
        "matrix",
        sims / "a.npy",
        sims / "b.npy",
        "--out",
        sims / "out" / "both",
        "--seed",
        0,
        "--seed",
        1,
    )
    each = [shell_json("evaluate", "matrix", sims / f"{name}.npy") for name in "ab"]
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
        shell("evaluate", "matrix", sims / "a.npy", sims / "small.npy")


def test_every_seed_has_its_own_bank(sims):
    bank = np.load(sims / "bank.npy")
    np.save(sims / "other.npy", bank[::-1, ::-1])
    banks = ["--bank", sims / "bank.npy", "--bank", sims / "other.npy"]
    both = shell_json("evaluate", "matrix", sims / "a.npy", sims / "b.npy", *banks, "--method", "is")["runs"][
        -1
    ]
    each = [
        shell_json(
            "evaluate", "matrix", sims / f"{name}.npy", "--bank", sims / f"{own}.npy", "--method", "is"
        )["runs"][-1]
        for name, own in (("a", "bank"), ("b", "other"))
    ]
    assert both["figures"]["MnR"] == pytest.approx(np.mean([run["figures"]["MnR"] for run in each]))
    assert both["postprocessing"] == "; ".join(run["postprocessing"] for run in each)
    shell("evaluate", "matrix", sims / "a.npy", *banks, code=2)


def test_facts_say_how_they_were_made(sims):
    import hashlib

    facts = shell_json("evaluate", "matrix", sims / "a.npy", "--seed", 3, "--title", "Mine")
    digest = hashlib.sha256((sims / "a.npy").read_bytes()).hexdigest()
    assert facts["inputs"] == [{"what": "similarities", "name": "a.npy", "sha256": digest}]
    assert (facts["seeds"], facts["title"]) == ([3], "Mine")
    assert set(facts["versions"]) == {"wordreel", "python", "numpy"}
    assert str(sims) not in json.dumps(facts)
