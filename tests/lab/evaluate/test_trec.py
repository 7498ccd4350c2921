"""Runs and judgements: written, read back, and refused with the line at fault."""

import numpy as np
import pytest

from wordreel.errors import DatasetError, EvaluationError
from wordreel.lab.evaluate.trec import caption_qrels, read_qrels, read_run, run_ranks, write_qrels, write_run
from wordreel.retrieval.caption_ranks import arrange, text_to_video_ranks, video_to_text_ranks
from wordreel.retrieval.metrics import retrieval_metrics


def captioned(seed=0, videos=9, each=4, levels=10**6):
    rng = np.random.default_rng(seed)
    sims = (rng.integers(0, levels, (videos * each, videos)) / levels).astype(np.float32)
    mask = rng.random(videos * each) < 0.8
    mask[::each] = True
    captions = arrange(videos, videos * each, mask=mask)
    return sims, captions, [f"c{i}" for i in range(videos * each)], [f"vidéo{i}" for i in range(videos)]


@pytest.mark.parametrize("levels", [3, 10**6])
def test_a_whole_run_gives_the_ranks_of_the_matrix(tmp_path, levels):
    sims, captions, texts, videos = captioned(levels=levels)
    write_qrels(tmp_path / "qrels", caption_qrels(captions, texts, videos))
    write_run(tmp_path / "run", sims, texts, videos)
    ranks = run_ranks(read_run(tmp_path / "run"), read_qrels(tmp_path / "qrels"))
    assert ranks.tolist() == text_to_video_ranks(sims, captions)[captions.valid].tolist()
    backwards = caption_qrels(captions, texts, videos, backwards=True)
    shown = [text for text, valid in zip(texts, captions.valid, strict=True) if valid]
    write_run(tmp_path / "back", sims.T[:, captions.valid], videos, shown)
    ranks = run_ranks(read_run(tmp_path / "back"), backwards)
    assert ranks.tolist() == video_to_text_ranks(sims, captions).tolist()


def test_a_run_of_the_best_few(tmp_path):
    sims, captions, texts, videos = captioned()
    write_run(tmp_path / "run", sims, texts, videos, k=3)
    found = run_ranks(read_run(tmp_path / "run"), caption_qrels(captions, texts, videos))
    whole = text_to_video_ranks(sims, captions)[captions.valid]
    assert found.tolist() == np.where(whole <= 3, whole, np.inf).tolist()
    assert retrieval_metrics(found).r1 == retrieval_metrics(whole).r1
    lines = (tmp_path / "run").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3 * len(texts)
    best = int(sims[0].argmax())
    assert lines[0] == f"c0 Q0 vidéo{best} 1 {sims[0, best]!s} wordreel"


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_scores_keep_their_order_and_their_ties(tmp_path, kind):
    near = np.nextafter(kind(0.1), kind(1))
    sims = np.array([[0.1, near, 1e-7, near, -3]], kind)
    write_run(tmp_path / "run", sims, ["q"], list("abcde"))
    (found,) = read_run(tmp_path / "run")
    assert list(found[1]) == ["b", "d", "a", "c", "e"]
    assert np.array(list(found[1].values())).astype(kind).tolist() == np.sort(sims[0])[::-1].tolist()
    assert run_ranks([found], {"q": {"d": 1}}).tolist() == [1.5]


def test_a_mapped_matrix(tmp_path):
    sims, captions, texts, videos = captioned()
    np.save(tmp_path / "sims.npy", sims)
    write_run(tmp_path / "a", np.load(tmp_path / "sims.npy", mmap_mode="r"), texts, videos)
    write_run(tmp_path / "b", sims, texts, videos)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(captions) == len(texts)


def test_the_order_is_that_of_the_scores_not_of_the_lines(tmp_path):
    path = tmp_path / "run"
    path.write_text("q\tQ0\tv1\t1\t0.2\tx\r\nq Q0 v2 2 7e-1 x\n\nq Q0 v3 0 -1 x\n")
    (found,) = read_run(path)
    assert run_ranks([found], {"q": {"v1": 1, "v3": 1}}).tolist() == [2]


def test_queries_without_a_right_answer_and_without_judgements(tmp_path):
    path = tmp_path / "run"
    path.write_text("q1 Q0 v1 1 0.2 x\nother Q0 v1 1 0.2 x\n")
    ranks = run_ranks(read_run(path), {"q0": {"v1": 0}, "q1": {"v1": 2}, "q2": {"v1": 1}})
    assert ranks.tolist() == pytest.approx([np.nan, 1, np.inf], nan_ok=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 v 1 0.5 x\nq Q0 w 2 0.4\n", r"line 2: a run has 6 columns .* not 5"),
        ("q Q0 a video 1 0.5 x\n", "line 1: .* not 7"),
        ("q Q0 v 1 high x\n", "line 1: the score 'high' is not a finite number"),
        ("q Q0 v 1 nan x\n", "line 1: the score 'nan'"),
        ("q Q0 v 1 1e999 x\n", "line 1: the score '1e999'"),
        ("q Q0 v 1 0.5 x\n\nq Q0 v 2 0.4 x\n", "line 3: query 'q' has item 'v' twice"),
        ("q Q0 v 1 0.5 x\nr Q0 v 1 0.5 x\nq Q0 w 2 0.4 x\n", "line 3: query 'q' comes again; sort"),
    ],
)
def test_runs_at_fault(tmp_path, text, message):
    path = tmp_path / "run"
    path.write_text(text)
    with pytest.raises(EvaluationError, match=f"{path}, {message}"):
        list(read_run(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q 0 v 1\nq 0 w\n", r"line 2: qrels have 4 columns .* not 3"),
        ("q 0 v yes\n", "line 1: the relevance 'yes' is not a whole number"),
        ("q 0 v 1\nq 0 v 0\n", "line 2: query 'q' has item 'v' twice"),
        ("query-id\tcorpus-id\tscore\nq\tv\n", "line 2: below this header are 3 columns"),
        ("query-id\tcorpus-id\tscore\nq\t\t1\n", "line 2: below this header"),
        ("query-id\tcorpus-id\tscore\nq\tv\t0.5\n", "line 2: the relevance '0.5'"),
    ],
)
def test_judgements_at_fault(tmp_path, text, message):
    path = tmp_path / "qrels"
    path.write_text(text)
    with pytest.raises(EvaluationError, match=f"{path}, {message}"):
        read_qrels(path)


def test_files_that_are_not_there_or_hold_nothing(tmp_path):
    with pytest.raises(DatasetError, match="cannot be read: No such file"):
        list(read_run(tmp_path / "none"))
    with pytest.raises(DatasetError, match="cannot be read"):
        list(read_run(tmp_path))
    for text in ("", "query-id\tcorpus-id\tscore\n"):
        (tmp_path / "empty").write_text(text)
        with pytest.raises(EvaluationError, match="holds no judgements"):
            read_qrels(tmp_path / "empty")
    with pytest.raises(EvaluationError, match="cannot be written"):
        write_qrels(tmp_path / "no" / "folder", {"q": {"v": 1}})


def test_judgements_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "qrels").write_text("\ufeffquery-id\tcorpus-id\tscore\nq 1\tv 1\t1\n", encoding="utf-8")
    assert read_qrels(tmp_path / "qrels") == {"q 1": {"v 1": 1}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_ids": ["a b", "c"]}, "'a b' is empty or holds white space"),
        ({"item_ids": ["", "w"]}, "white space"),
        ({"item_ids": ["v", "v"]}, "must differ"),
        ({"query_ids": ["q", "q"]}, "must differ"),
        ({"query_ids": ["q"]}, r"must be \[1, 2\]"),
        ({"query_ids": ["q", "r", "s"]}, r"must be \[3, 2\]"),
        ({"item_ids": ["v"]}, r"must be \[2, 1\]"),
        ({"scores": np.array([[0, np.nan], [1, 1]])}, "not finite"),
    ],
)
def test_runs_that_cannot_be_written_leave_nothing(tmp_path, changes, message):
    given = {"scores": np.eye(2), "query_ids": ["q", "r"], "item_ids": ["v", "w"], **changes}
    with pytest.raises(EvaluationError, match=message):
        write_run(tmp_path / "run", **given)
    assert list(tmp_path.iterdir()) == []


def test_ids_of_captions_must_be_as_many():
    with pytest.raises(EvaluationError, match="need as many ids"):
        caption_qrels(arrange(1, 2), ["c"], ["v"])
