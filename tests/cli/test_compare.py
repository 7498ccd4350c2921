"""`wordreel compare`."""

import numpy as np
import pytest
from tests.cli.invoke import shell, shell_json

from wordreel.errors import EvaluationError


def test_compare_results_and_matrices_alike(sims):
    for name in "ab":
        shell("evaluate", "matrix", sims / f"{name}.npy", "--out", sims / "out" / name)
    files = shell_json("compare", sims / "out" / "a", sims / "out" / "b", "--samples", 500)
    matrices = shell_json("compare", sims / "a.npy", sims / "b.npy", "--samples", 500)
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
    (texts, _) = shell_json("compare", sims / "a.npy", sims / "a.npy", "--samples", 100)["compared"]
    assert {f["difference"] for f in texts["figures"].values()} == {0}
    assert {f["p_value"] for f in texts["figures"].values()} == {1}


def test_compare_names_post_processing_of_both(sims):
    shell("evaluate", "matrix", sims / "a.npy", "--bank", sims / "bank.npy", "--out", sims / "out" / "a")
    facts = shell_json("compare", sims / "out" / "a", sims / "out" / "a", "--run-b", 3, "--samples", 100)
    assert facts["compared"][0]["postprocessing"] == {
        "a": "none",
        "b": "querybank(bank.npy, 200 queries, method=dis, beta=20, k=1)",
    }


def test_compare_normalised_rows_of_one_result(sims):
    named = ["--method", "dis", "--method", "dsl", "--beta", 20, "--beta", 50]
    bank = ["--bank", sims / "bank.npy", "--out", sims / "out" / "a"]
    both = shell_json("evaluate", "matrix", sims / "a.npy", *bank, *named)["runs"]
    words = ["compare", sims / "out" / "a", sims / "out" / "a", "--run-a", 3, "--run-b", 4, "--samples", 100]
    (texts,) = shell_json(*words)["compared"]
    assert texts["postprocessing"] == {
        "a": "querybank(bank.npy, 200 queries, method=dis, beta=20, k=1)",
        "b": "transductive(uses all test queries, method=dsl, beta=50)",
    }
    assert texts["figures"]["R1"]["a"] == pytest.approx(both[2]["figures"]["R1"])
    assert texts["figures"]["R1"]["b"] == pytest.approx(both[3]["figures"]["R1"])
    assert "uses all test queries" in shell(*words).stdout
    shell("compare", sims / "a.npy", sims / "a.npy", "--folds", 4, code=2)


def test_compare_refuses_other_galleries(sims):
    np.save(sims / "small.npy", np.eye(5, dtype=np.float32))
    with pytest.raises(EvaluationError, match="20 and 5 videos"):
        shell("compare", sims / "a.npy", sims / "small.npy")
