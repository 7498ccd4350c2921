"""Rankings that go out for other programs, and come back as TREC runs."""

import json

import pytest
from tests.cli.invoke import shell, shell_json

from wordreel.errors import EvaluationError


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
    run, folder = sims / "run.trec", sims / "beir"
    here = shell_json(
        "evaluate",
        "matrix",
        sims / "a.npy",
        "--direction",
        "v2t",
        "--export-trec",
        run,
        "--export-beir",
        folder,
    )
    back = shell_json("evaluate", "run", run, folder, "--direction", "v2t")
    assert back["runs"][0]["figures"] == pytest.approx(here["runs"][0]["figures"])


def test_a_beir_folder_holds_queries_corpus_and_qrels(sims):
    folder = sims / "beir"
    shell("evaluate", "matrix", sims / "a.npy", "--export-beir", folder)
    lines = {name: (folder / f"{name}.jsonl").read_text().splitlines() for name in ("queries", "corpus")}
    assert (len(lines["queries"]), len(lines["corpus"])) == (60, 20)
    assert json.loads(lines["queries"][4]) == {"_id": "v1#1", "text": "v1#1"}
    assert json.loads(lines["corpus"][1]) == {"_id": "v1", "title": "", "text": "v1"}
    qrels = (folder / "qrels" / "test.tsv").read_text().splitlines()
    assert qrels[:2] == ["query-id\tcorpus-id\tscore", "v0#0\tv0\t1"]
    (folder / "corpus.jsonl").write_text("\n".join(lines["corpus"][1:]) + "\n")
    run = sims / "run.trec"
    shell("evaluate", "matrix", sims / "a.npy", "--export-trec", run)
    with pytest.raises(EvaluationError, match="judges item 'v0', which the folder lacks"):
        shell("evaluate", "run", run, folder)
    with pytest.raises(EvaluationError, match=r"holds no qrels/test\.tsv"):
        shell("evaluate", "run", run, sims)
