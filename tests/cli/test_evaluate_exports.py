"""Rankings that go out for other programs, and come back as TREC runs."""

import pytest
from tests.cli.invoke import shell_json


def test_a_ranking_goes_out_as_a_trec_run_and_comes_back(sims):
    run, qrels = sims / "run.trec", sims / "qrels.txt"
    here = shell_json("evaluate", "matrix", sims / "a.npy", "--mask", sims / "mask.npy", "--direction", "t2v",
                 "--export-trec", run, "--export-qrels", qrels)  # fmt: skip
    back = shell_json("evaluate", "run", run, qrels, "--title", "again")
    assert back["measured"]["kind"] == "run"
    assert back["runs"][0]["postprocessing"] == "unknown"
    assert back["runs"][0]["figures"] == pytest.approx(here["runs"][0]["figures"])
    assert (back["runs"][0]["queries"], back["runs"][0]["gallery"]) == (here["runs"][0]["queries"], 20)
    assert [entry["what"] for entry in back["inputs"]] == ["run", "qrels"]
    assert run.read_text().splitlines()[0].split()[1] == "Q0"


def test_the_exported_ranking_is_the_normalised_one_where_there_is_a_bank(sims):
    run, qrels = sims / "run.trec", sims / "qrels.txt"
    here = shell_json("evaluate", "matrix", sims / "a.npy", "--bank", sims / "bank.npy", "--method", "csls",
                 "--export-trec", run, "--export-qrels", qrels)  # fmt: skip
    back = shell_json("evaluate", "run", run, qrels)
    assert back["runs"][0]["figures"] == pytest.approx(here["runs"][-1]["figures"])
    assert here["runs"][-1]["figures"] != here["runs"][0]["figures"]


def test_videos_that_ask_are_exported_the_other_way_round(sims):
    run, qrels = sims / "run.trec", sims / "qrels.txt"
    here = shell_json(
        "evaluate",
        "matrix",
        sims / "a.npy",
        "--direction",
        "v2t",
        "--export-trec",
        run,
        "--export-qrels",
        qrels,
    )
    back = shell_json("evaluate", "run", run, qrels, "--direction", "v2t")
    assert back["runs"][0]["figures"] == pytest.approx(here["runs"][0]["figures"])
