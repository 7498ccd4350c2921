"""`wordreel evaluate`, `compare`, `results` and the `--plot` flags on similarity matrices."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import typer
from tests.cli.test_qbnorm import asked, shell

from wordreel.cli.evaluate_options import BankOptions
from wordreel.errors import EvaluationError
from wordreel.evaluate.metrics import retrieval_metrics
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
    slow = retrieval_metrics(text_to_video_ranks(matrix, captions))
    assert texts["figures"]["R1"] == slow.r1
    assert texts["figures"]["MnR"] == slow.mean_rank
    assert texts["figures"]["Rsum"] == slow.rsum
    other = retrieval_metrics(video_to_text_ranks(matrix, captions, protocol=v2t))
    assert (videos["protocol"], videos["figures"]["MnR"]) == (v2t, other.mean_rank)


def test_one_direction_and_a_bank(sims):
    facts = asked(
        "evaluate", sims / "a.npy", "--direction", "t2v", "--bank", sims / "bank.npy", "--method", "is"
    )
    plain, after = facts["runs"]
    assert plain["postprocessing"] == "none"
    assert after["postprocessing"] == "querybank(bank.npy, 200 queries, method=is, beta=20)"
    same = asked("qbnorm", "--bank", sims / "bank.npy", "--test", sims / "a.npy", "--method", "is")
    assert after["figures"]["MnR"] == same["after"]["MnR"]
    assert after["hubness"] == same["hubness"]["after"]
    assert facts["measured"]["normalisations"] == [
        {"direction": "t2v", "method": "is", "parameters": {"beta": 20.0}, "transductive": False}
    ]
    seen = asked("evaluate", sims / "a.npy", "--bank", sims / "a.npy")
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
    facts = asked("evaluate", sims / "a.npy", *words, "--beta", 20, "--beta", 30, "--beta", 40)
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
    shown = shell("evaluate", sims / "a.npy", "--method", "dsl").stdout
    assert "transductive(uses all test queries, method=dsl, beta=100)" in shown
    assert "use all test queries" in " ".join(shell("evaluate", "--help").stdout.replace("│", "").split())
    shell("evaluate", sims / "a.npy", "--method", "is", code=2)  # no bank
    shell("evaluate", sims / "a.npy", *words, "--beta", 20, code=2)
    shell("evaluate", sims / "a.npy", *words, "--export-trec", sims / "run", code=2)


def test_folds_are_test_sets_of_their_own(sims):
    matrix, bank = np.load(sims / "a.npy"), np.load(sims / "bank.npy")
    words = ["--bank", sims / "bank.npy", "--method", "is", "--method", "dsl", "--modality", "image"]
    facts = asked("evaluate", sims / "a.npy", "--folds", 4, *words)
    each = []
    for n in range(4):
        np.save(sims / "part.npy", matrix[15 * n : 15 * n + 15, 5 * n : 5 * n + 5])
        np.save(sims / "bank.npy", bank[:, 5 * n : 5 * n + 5])
        each.append(asked("evaluate", sims / "part.npy", *words)["runs"])
    for place, run in enumerate(facts["runs"]):
        values = [runs[place]["figures"]["R5"] for runs in each]
        assert run["figures"]["R5"] == pytest.approx(np.mean(values))
        assert run["deviation"]["R5"] == pytest.approx(np.std(values, ddof=1))
    assert (facts["measured"]["folds"], facts["measured"]["videos"]) == (4, 20)
    assert "text → image" in shell("evaluate", sims / "part.npy", "--modality", "image").stdout
    with pytest.raises(EvaluationError, match="20 items cannot be cut into 3 folds"):
        shell("evaluate", sims / "a.npy", "--folds", 3)
    shell("evaluate", sims / "a.npy", sims / "b.npy", "--folds", 4, code=2)


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


def test_every_seed_has_its_own_bank(sims):
    bank = np.load(sims / "bank.npy")
    np.save(sims / "other.npy", bank[::-1, ::-1])
    banks = ["--bank", sims / "bank.npy", "--bank", sims / "other.npy"]
    both = asked("evaluate", sims / "a.npy", sims / "b.npy", *banks, "--method", "is")["runs"][-1]
    each = [
        asked("evaluate", sims / f"{name}.npy", "--bank", sims / f"{own}.npy", "--method", "is")["runs"][-1]
        for name, own in (("a", "bank"), ("b", "other"))
    ]
    assert both["figures"]["MnR"] == pytest.approx(np.mean([run["figures"]["MnR"] for run in each]))
    assert both["postprocessing"] == "; ".join(run["postprocessing"] for run in each)
    shell("evaluate", sims / "a.npy", *banks, code=2)
    shell("evaluate", "captions.json", *banks, code=2)


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
        BankOptions(["bank.npy"], method=["dis"], beta=["many"]).methods()


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
    assert facts["compared"][0]["postprocessing"] == {
        "a": "none",
        "b": "querybank(bank.npy, 200 queries, method=dis, beta=20, k=1)",
    }


def test_compare_normalises_matrices(sims):
    words = ["compare", sims / "a.npy", sims / "a.npy", "--samples", 100, "--bank-a", sims / "bank.npy"]
    (texts,) = asked(*words, "--method-b", "dsl", "--beta-b", 50)["compared"]  # A has no bank of videos
    assert texts["postprocessing"] == {
        "a": "querybank(bank.npy, 200 queries, method=dis, beta=20, k=1)",
        "b": "transductive(uses all test queries, method=dsl, beta=50)",
    }
    named = ["--method", "dis", "--method", "dsl", "--beta", 20, "--beta", 50]
    both = asked("evaluate", sims / "a.npy", "--bank", sims / "bank.npy", *named)["runs"]
    assert texts["figures"]["R1"]["a"] == pytest.approx(both[2]["figures"]["R1"])
    assert texts["figures"]["R1"]["b"] == pytest.approx(both[3]["figures"]["R1"])
    ways = asked("compare", sims / "a.npy", sims / "a.npy", "--samples", 100, "--method-a", "test-is",
                 "--method-b", "dsl")["compared"]  # fmt: skip
    assert [part["direction"] for part in ways] == ["t2v", "v2t"]
    assert "uses all test queries" in shell(*words, "--method-b", "dsl").stdout
    shell("evaluate", sims / "a.npy", "--out", sims / "out" / "a")
    shell("compare", sims / "out" / "a", sims / "a.npy", "--method-a", "dsl", code=2)
    shell("compare", sims / "a.npy", sims / "a.npy", "--beta-b", 3, code=2)
    shell("compare", sims / "a.npy", sims / "a.npy", "--folds", 4, code=2)


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


def test_a_ranking_goes_out_as_a_trec_run_and_comes_back(sims):
    run, qrels = sims / "run.trec", sims / "qrels.txt"
    here = asked("evaluate", sims / "a.npy", "--mask", sims / "mask.npy", "--direction", "t2v",
                 "--export-trec", run, "--export-qrels", qrels)  # fmt: skip
    back = asked("evaluate", run, "--qrels", qrels, "--title", "again")
    assert back["measured"]["kind"] == "run"
    assert back["runs"][0]["postprocessing"] == "unknown"
    assert back["runs"][0]["figures"] == pytest.approx(here["runs"][0]["figures"])
    assert (back["runs"][0]["queries"], back["runs"][0]["gallery"]) == (here["runs"][0]["queries"], 20)
    assert [entry["what"] for entry in back["inputs"]] == ["run", "qrels"]
    assert run.read_text().splitlines()[0].split()[1] == "Q0"


def test_the_exported_ranking_is_the_normalised_one_where_there_is_a_bank(sims):
    run, qrels = sims / "run.trec", sims / "qrels.txt"
    here = asked("evaluate", sims / "a.npy", "--bank", sims / "bank.npy", "--method", "csls",
                 "--export-trec", run, "--export-qrels", qrels)  # fmt: skip
    back = asked("evaluate", run, "--qrels", qrels)
    assert back["runs"][0]["figures"] == pytest.approx(here["runs"][-1]["figures"])
    assert here["runs"][-1]["figures"] != here["runs"][0]["figures"]


def test_videos_that_ask_are_exported_the_other_way_round(sims):
    run, folder = sims / "run.trec", sims / "beir"
    here = asked(
        "evaluate", sims / "a.npy", "--direction", "v2t", "--export-trec", run, "--export-beir", folder
    )
    back = asked("evaluate", run, "--qrels", folder, "--direction", "v2t")
    assert back["runs"][0]["figures"] == pytest.approx(here["runs"][0]["figures"])


def test_a_beir_folder_holds_queries_corpus_and_qrels(sims):
    folder = sims / "beir"
    shell("evaluate", sims / "a.npy", "--export-beir", folder)
    lines = {name: (folder / f"{name}.jsonl").read_text().splitlines() for name in ("queries", "corpus")}
    assert (len(lines["queries"]), len(lines["corpus"])) == (60, 20)
    assert json.loads(lines["queries"][4]) == {"_id": "v1#1", "text": "v1#1"}
    assert json.loads(lines["corpus"][1]) == {"_id": "v1", "title": "", "text": "v1"}
    qrels = (folder / "qrels" / "test.tsv").read_text().splitlines()
    assert qrels[:2] == ["query-id\tcorpus-id\tscore", "v0#0\tv0\t1"]
    (folder / "corpus.jsonl").write_text("\n".join(lines["corpus"][1:]) + "\n")
    run = sims / "run.trec"
    shell("evaluate", sims / "a.npy", "--export-trec", run)
    with pytest.raises(EvaluationError, match="judges item 'v0', which the folder lacks"):
        shell("evaluate", run, "--qrels", folder)
    with pytest.raises(EvaluationError, match=r"holds no qrels/test\.tsv"):
        shell("evaluate", run, "--qrels", sims)


def test_options_of_other_sources_do_not_go_with_a_run(sims):
    shell("evaluate", "run.trec", "--qrels", "q.txt", "--export-trec", "x", code=2)
    shell("evaluate", sims / "a.npy", "--qrels", "q.txt", code=2)
    shell("evaluate", sims / "a.npy", sims / "b.npy", "--export-trec", "x", code=2)


def bird_folder(folder, classes=(99, 100, 101, 102, 103), each=4):
    """CUB's lists for a few pictures; classes above 100 are the test split."""
    names = [f"{label:03}.Bird/{label}_{n}.jpg" for label in classes for n in range(each)]
    labels = np.repeat(classes, each)
    (folder / "images.txt").write_text("".join(f"{n} {name}\n" for n, name in enumerate(names, 1)))
    (folder / "image_class_labels.txt").write_text(
        "".join(f"{n} {label}\n" for n, label in enumerate(labels, 1))
    )
    return labels[labels > 100]


def test_pictures_that_are_searched_by_class(tmp_path):
    labels = bird_folder(tmp_path)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(labels), 6)) + 0.8 * np.eye(6)[labels - 101]
    np.save(tmp_path / "birds.npy", vectors.astype(np.float32))
    facts = asked("evaluate", "cub", "--data", tmp_path, "--embeddings", tmp_path / "birds.npy")
    unit = vectors.astype(np.float32)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    scores = unit @ unit.T
    np.fill_diagonal(scores, -np.inf)
    right = labels[scores.argmax(axis=1)] == labels
    (plain,) = facts["runs"]
    assert plain["recall"]["1"] == pytest.approx(100 * right.mean())
    assert list(plain["recall"]) == ["1", "2", "4", "8"]
    assert (plain["queries"], plain["items"], plain["postprocessing"]) == (12, 12, "none")
    result = shell("evaluate", "cub", "--data", tmp_path, "--embeddings", tmp_path / "birds.npy")
    assert "12 items instead of 5,924" in result.stderr
    assert "mAP@R" in result.stdout
    np.save(tmp_path / "few.npy", vectors[:5])
    with pytest.raises(EvaluationError, match="5 embeddings, but split 'test' of cub has 12 pictures"):
        shell("evaluate", "cub", "--data", tmp_path, "--embeddings", tmp_path / "few.npy")
    shell("evaluate", "cub", "--data", tmp_path, code=2)
    shell("evaluate", "cub", "--data", tmp_path, "--embeddings", tmp_path / "birds.npy", "--out", "x", code=2)


def product_folder(folder, products, each=3):
    lines = [
        f"{n} {label} 1 chair_final/{label}_{n}.JPG"
        for n, label in enumerate(np.repeat(np.arange(1, products + 1), each), 1)
    ]
    (folder / "Ebay_test.txt").write_text("image_id class_id super_class_id path\n" + "\n".join(lines) + "\n")
    return np.repeat(np.arange(products), each)


@pytest.mark.parametrize("protocol", ["cub", "sop"])
def test_pictures_normalised_by_a_bank_of_training_pictures(tmp_path, protocol):
    labels = bird_folder(tmp_path) if protocol == "cub" else product_folder(tmp_path, 8)
    labels = labels - labels.min()
    rng = np.random.default_rng(1)
    hub = rng.normal(size=6)
    vectors = rng.normal(size=(len(labels), 6)) + 1.2 * np.eye(10)[labels][:, :6] + hub
    train = rng.normal(size=(40, 6)) + hub
    for name, array in (("test", vectors), ("train", train)):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    words = ["evaluate", protocol, "--data", tmp_path, "--embeddings", tmp_path / "test.npy"]
    words += ["--bank", tmp_path / "train.npy", "--method", "dis", "--method", "test-is", "--method", "dsl"]
    runs = asked(*words)["runs"]
    names = [run["postprocessing"].partition("(")[0] for run in runs]
    assert names == ["none", "querybank", "transductive", "transductive"]
    unit, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, train))
    sims, bank = unit @ unit.T, other @ unit.T
    np.fill_diagonal(sims, -1.25)
    active = set(bank.argmax(axis=1))
    inverted = np.exp(20 * sims) / np.exp(20 * bank).sum(axis=0)
    gate = np.array([row.argmax() in active for row in sims])[:, None]
    column = np.exp(100 * sims) / np.exp(100 * sims).sum(axis=0)
    for run, scores in zip(runs, (sims, np.where(gate, inverted, sims), column, sims * column), strict=True):
        scores = scores.copy()
        np.fill_diagonal(scores, -np.inf)
        right = labels[scores.argmax(axis=1)] == labels
        assert run["recall"]["1"] == pytest.approx(100 * right.mean()), run["postprocessing"]
    assert "transductive(uses all test queries, method=dsl" in shell(*words).stdout
    np.save(tmp_path / "train.npy", train[:, :5])
    with pytest.raises(EvaluationError, match="5 dimensions, the items' 6"):
        shell(*words)
    shell(*words[:6], "--method", "dis", code=2)


def test_the_device_is_passed_on(sims, monkeypatch):
    from wordreel.errors import HubnessError
    from wordreel.hubness import device

    monkeypatch.setattr(device, "find_gpu", lambda: None)
    for words in (["qbnorm", "--test", sims / "a.npy"], ["evaluate", sims / "a.npy"]):
        words = [*words, "--bank", sims / "bank.npy", "--device"]
        assert asked(*words, "cpu") == asked(*words, "auto")
        with pytest.raises(HubnessError, match="no CUDA GPU"):
            shell(*words, "cuda")
    pytest.importorskip("torch")
    monkeypatch.setattr(device, "find_gpu", lambda: "cpu")  # torch on the CPU stands in for a GPU
    words = ["qbnorm", "--test", sims / "a.npy", "--bank", sims / "bank.npy", "--method", "is", "--device"]
    assert asked(*words, "cuda")["after"] == pytest.approx(asked(*words, "cpu")["after"])
