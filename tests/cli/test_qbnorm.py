"""`wordreel qbnorm` and `wordreel hubness` against the published procedure, written down plainly."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.cli.invoke import shell, shell_json

from wordreel.errors import HubnessError, UnsafePickle
from wordreel.hubness import make_method, ranking_scores
from wordreel.retrieval import rankings
from wordreel.retrieval.caption_ranks import arrange, text_to_video, video_to_text

KEYS = ["R1", "R5", "R10", "R50", "MdR", "MnR", "Geom"]


def synthetic(seed, bank=600, videos=60, captions=20, dim=16):
    """Cosines of a hubby joint space: `bank`, `test` with neighbouring captions, and a mask."""
    rng = np.random.default_rng(seed)
    gap = rng.normal(size=dim)
    meaning = rng.normal(size=(videos, dim))
    shown = meaning + rng.normal(0, 0.8, (videos, 1)) * gap

    def texts(of):
        return meaning[of] + gap + 1.2 * rng.normal(size=(len(of), dim))

    def cosines(words):
        words = words / np.linalg.norm(words, axis=1, keepdims=True)
        return (words @ (shown / np.linalg.norm(shown, axis=1, keepdims=True)).T).astype(np.float32)

    mask = (rng.random((videos, captions)) < 0.8).astype(np.int64)
    mask[:, 0] = 1
    right = np.repeat(np.arange(videos), captions)
    return cosines(texts(rng.integers(0, videos, bank))), cosines(texts(right)), mask


def plain_normalised(bank, test, beta, k):
    """The published procedure: the k best of each bank query, exponentials, a division where it applies."""
    retrieved = set(np.argsort(-bank, axis=1)[:, :k].reshape(-1).tolist())
    total = np.exp(bank * beta).sum(axis=0)
    out = []
    for row in test:
        raised = np.exp(row * beta)
        out.append(raised / total if int(np.argsort(-raised)[0]) in retrieved else row)
    return np.array(out)


def plain_t2v(sims, mask):
    each = len(sims) // sims.shape[1]
    ranks = []
    for row, scores in enumerate(sims):
        if mask is None or mask.reshape(-1)[row]:
            places = np.flatnonzero(np.sort(-scores) == -scores[row // each])
            ranks.append(places.mean())
    return plain_figures(np.array(ranks))


def plain_v2t(sims, mask):
    """`sims [videos, captions]`."""
    each = sims.shape[1] // len(sims)
    keep = np.ones(sims.shape[1], bool) if mask is None else mask.reshape(-1).astype(bool)
    ranks = []
    for video, scores in enumerate(sims):
        ordered = np.sort(-scores[keep])
        own = [c for c in range(video * each, (video + 1) * each) if keep[c]]
        ranks.append(min(np.flatnonzero(ordered == -scores[c]).mean() for c in own))
    return plain_figures(np.array(ranks))


def plain_figures(ranks):
    recalls = [100 * np.mean(ranks == 0), *(100 * np.mean(ranks < k) for k in (5, 10, 50))]
    geometric = np.prod(recalls[:3]) ** (1 / 3)
    found = [*recalls, np.median(ranks) + 1, np.mean(ranks) + 1, geometric]
    return dict(zip(KEYS, (round(float(value), 1) for value in found), strict=True))


def rounded(found):
    return {name: round(value, 1) for name, value in found.items()}


@pytest.fixture
def files(tmp_path):
    """Matrices on disk: `files(kind, name=array)` gives their paths."""

    def write(kind="npy", **arrays):
        paths = []
        for name, array in arrays.items():
            path = tmp_path / f"{name}.{kind}"
            np.save(path, array) if kind == "npy" else path.write_bytes(pickle.dumps(array))
            paths.append(path)
        return paths

    return write


@pytest.mark.parametrize("kind", ["npy", "pkl"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_figures_of_the_published_procedure(files, kind, k, masked):
    bank, test, mask = synthetic(k)
    paths = files(kind, bank=bank, test=test, mask=mask)
    content = [path.read_bytes() for path in paths]
    words = ["--mask", paths[2]] if masked else []
    found = shell_json("qbnorm", "--bank", paths[0], "--test", paths[1], "--k", k, *words)
    used = mask if masked else None
    assert rounded(found["before"]) == plain_t2v(test, used)
    assert rounded(found["after"]) == plain_t2v(plain_normalised(bank, test, np.float32(20), k), used)
    assert found["after"]["R1"] > found["before"]["R1"]
    assert 0 < found["corrected"] <= found["queries"] == (mask.sum() if masked else len(test))
    assert found["postprocessing"] == f"querybank(bank.{kind}, 600 queries, method=dis, beta=20, k={k})"
    assert [path.read_bytes() for path in paths] == content


def test_the_published_line_works_unchanged(files):
    bank, test, mask = synthetic(5)
    paths = files("pkl", bank=bank, test=test, mask=mask)
    flags = ("--sims_train_test_path", "--sims_test_path", "--test_query_masks_path")
    words = [word for pair in zip(flags, paths, strict=True) for word in pair]
    assert shell_json("qbnorm", *words, "--beta", "20.0", "--k", "1") == shell_json(
        "qbnorm", "--bank", paths[0], "--test", paths[1], "--mask", paths[2]
    )


def test_a_gate_that_stays_shut_for_some(files):
    bank, test, _ = synthetic(3, bank=8)
    paths = files(bank=bank, test=test)
    found = shell_json("qbnorm", "--bank", paths[0], "--test", paths[1])
    assert 0 < found["corrected"] < found["queries"]
    assert rounded(found["after"]) == plain_t2v(plain_normalised(bank, test, np.float32(20), 1), None)


def test_blocks_and_spans_change_nothing(files, tmp_path, monkeypatch):
    bank, test, mask = synthetic(4, bank=30)
    paths = files(bank=bank, test=test, turned=np.ascontiguousarray(test.T), mask=mask)
    (tmp_path / "o").mkdir()

    def everything(name):
        words = ["qbnorm", "--mask", paths[3], "--overwrite", "--save", tmp_path / "o" / name]
        forth = shell_json(*words, "--bank", paths[0], "--test", paths[1])
        scores = np.load(tmp_path / "o" / name)
        back = shell_json(*words, "--bank", paths[2], "--test", paths[2], "--direction", "v2t")
        return [*forth.items()][:-1], [*back.items()][:-1], scores, np.load(tmp_path / "o" / name)

    def spans(shape, work, threads):
        return [work(start, min(start + 37, shape[0])) for start in range(0, shape[0], 37)[::-1]]

    whole = everything("a.npy")
    monkeypatch.setattr(rankings, "BLOCK", 300)
    monkeypatch.setattr(rankings, "each_span", spans)
    pieces = everything("b.npy")
    assert whole[:2] == pieces[:2]
    assert all((a == b).all() for a, b in zip(whole[2:], pieces[2:], strict=True))


@pytest.mark.parametrize("masked", [False, True])
def test_video_to_text(files, masked, tmp_path):
    _, test, mask = synthetic(7, bank=200, videos=30, captions=6)
    # Videos ask: a bank of other videos against the same captions.
    rng = np.random.default_rng(1)
    others = np.tanh(rng.normal(0.1, 0.2, (90, len(test)))).astype(np.float32)
    paths = files(others=others, turned=np.ascontiguousarray(test.T), mask=mask)
    words = ["--mask", paths[2]] if masked else []
    out = tmp_path / "out.npy"
    found = shell_json(
        "qbnorm", "--bank", paths[0], "--test", paths[1], "--direction", "v2t", "--save", out, *words
    )
    keep = mask.reshape(-1).astype(bool) if masked else np.ones(len(test), bool)
    expected = np.full(test.T.shape, -1e8)
    expected[:, keep] = plain_normalised(others[:, keep], test.T[:, keep], np.float32(20), 1)
    assert rounded(found["before"]) == plain_v2t(test.T, mask if masked else None)
    assert rounded(found["after"]) == plain_v2t(expected, mask if masked else None)
    assert found["gallery"] == keep.sum()
    kept = np.load(out)
    assert kept.shape == test.T.shape
    assert (kept.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_ragged_captions(files, tmp_path):
    bank, test, mask = synthetic(8)
    short = test[mask.reshape(-1).astype(bool)]
    (tmp_path / "counts.txt").write_text(" ".join(map(str, mask.sum(axis=1))))
    paths = files(bank=bank, test=test, short=short, mask=mask)
    ragged = shell_json("qbnorm", "--bank", paths[0], "--test", paths[2], "--counts", tmp_path / "counts.txt")
    square = shell_json(
        "qbnorm", "--bank", paths[0], "--test", paths[1], "--mask", paths[3], "--captions-per-video", "20"
    )
    assert ragged == square
    with pytest.raises(HubnessError, match="--counts"):
        shell_json("qbnorm", "--bank", paths[0], "--test", paths[2])


def test_a_mask_inside_the_test_file_is_used(files, tmp_path):
    bank, test, mask = synthetic(9)
    paths = files(bank=bank, test=test, mask=mask)
    np.save(tmp_path / "set-sims.npy", {"sims": test, "query_masks": mask})
    result = shell("qbnorm", "--bank", paths[0], "--test", tmp_path / "set-sims.npy", "--json")
    assert "using the mask query_masks" in result.stderr
    told = shell_json("qbnorm", "--bank", paths[0], "--test", paths[1], "--mask", paths[2])
    assert json.loads(result.stdout) == told


def test_hubness_before_and_after_is_that_of_the_matrices(files, tmp_path):
    bank, test, _ = synthetic(11)
    paths = files(bank=bank, test=test)
    found = shell_json("qbnorm", "--bank", paths[0], "--test", paths[1], "--save", tmp_path / "o.npy")[
        "hubness"
    ]
    for side, path in (("before", paths[1]), ("after", tmp_path / "o.npy")):
        alone = shell_json("hubness", path)
        assert {name: alone[name] for name in found[side]} == found[side]
        assert (alone["queries"], alone["items"]) == test.shape
    best = np.argsort(-test, axis=1)[:, :10]
    counts = np.bincount(best.reshape(-1), minlength=60)
    skew = np.mean((counts - counts.mean()) ** 3) / np.std(counts) ** 3
    assert found["before"]["skewness"] == pytest.approx(skew)
    assert found["after"]["skewness"] < skew


def test_hubness_of_some_neighbours(files):
    (path,) = files(sims=np.array([[0.9, 0.1, 0.5], [0.8, 0.7, 0.1]]))
    assert shell_json("hubness", path, "--k", "1")["largest"] == 2
    text = shell("hubness", path, "--k", "1").stdout
    assert "2 queries, 3 items" in text
    assert "skewness                 0.707" in text


def test_hubness_of_as_many_neighbours_as_items_is_refused(files):
    (path,) = files(sims=np.eye(3))
    assert "retrieves all 3 items" in shell("hubness", path, "--k", "3", code=2).stderr


def test_saved_scores_rank_as_the_figures_say(files, tmp_path):
    bank, test, _ = synthetic(12, bank=8)
    paths = files(bank=bank, test=test)
    out = tmp_path / "out.npy"
    result = shell("qbnorm", "--bank", paths[0], "--test", paths[1], "--save", out)
    assert "compare scores within a row only" in result.stderr
    assert "on two scales" in result.stderr
    expected = plain_normalised(bank, test, np.float32(20), 1)
    scores = np.load(out)
    assert scores.dtype == np.float32
    assert (scores.argmax(axis=1) == expected.argmax(axis=1)).all()
    assert [path.name for path in tmp_path.iterdir() if ".new" in path.name] == []

    before = out.read_bytes()
    words = ["qbnorm", "--bank", paths[0], "--test", paths[1], "--method", "is", "--save"]
    assert "--overwrite" in shell(*words, out, code=2).stderr
    assert out.read_bytes() == before
    shell(*words, out, "--overwrite")
    assert out.read_bytes() != before
    assert "which is read" in shell(*words, paths[0], "--overwrite", code=2).stderr
    assert "ends in .npy" in shell(*words, tmp_path / "out.txt", code=2).stderr
    with pytest.raises(HubnessError, match="cannot be written"):
        shell(*words, tmp_path / "nowhere" / "out.npy")


@pytest.mark.parametrize("method", ["none", "gc", "csls", "is", "cent", "nnn", "sinkhorn", "test-is", "dsl"])
def test_every_method_of_one_bank(files, method):
    bank, test, mask = synthetic(13, bank=100, captions=4)
    paths = files(bank=bank, test=test, mask=mask[:, :4])
    words = ["qbnorm", "--bank", paths[0], "--test", paths[1], "--mask", paths[2], "--method", method]
    found = shell_json(*words)
    labels = {"none": "none", "is": "querybank(bank.npy, 100 queries, method=is, beta=20)"}
    labels |= {
        name: f"transductive(uses all test queries, method={name}, beta=100)" for name in ("test-is", "dsl")
    }
    other = f"querybank(bank.npy, 100 queries, method={method}"
    assert found["postprocessing"].startswith(labels.get(method, other))
    assert found["transductive"] == (method in ("test-is", "dsl"))
    assert (found["before"] == found["after"]) == (method == "none")
    assert found["corrected"] is None


def test_transductive_is_said(files):
    _, test, _ = synthetic(14, captions=2)
    (path,) = files(test=test)
    seen = shell_json("qbnorm", "--bank", path, "--test", path)
    assert seen["postprocessing"].startswith("transductive(the bank holds test queries, method=dis")
    assert seen["transductive"]
    for method in ("test-is", "dsl"):
        for direction in ("t2v", "v2t"):
            rows = test if direction == "t2v" else np.ascontiguousarray(test.T)
            (path,) = files(rows=rows)
            words = ["qbnorm", "--test", path, "--method", method, "--direction", direction, "--beta", 5]
            found = shell_json(*words)
            assert found["postprocessing"] == f"transductive(uses all test queries, method={method}, beta=5)"
            # The printed formula: a softmax down the columns, over the queries of this direction.
            raised = np.exp(5 * rows.astype(np.float64))
            scores = raised / raised.sum(axis=0) * (rows if method == "dsl" else 1)
            scores = scores if direction == "t2v" else scores.T
            wanted = (
                text_to_video(scores, arrange(60, 120))
                if direction == "t2v"
                else video_to_text(scores, arrange(60, 120))
            )
            assert found["after"]["MnR"] == pytest.approx(wanted.mean_rank)
            assert found["after"]["R1"] == pytest.approx(wanted.r1)


def test_automatic_beta(files):
    bank, test, _ = synthetic(15, captions=2)
    paths = files(bank=bank, test=test, logits=100 * bank, more=100 * test)
    cosine = shell_json("qbnorm", "--bank", paths[0], "--test", paths[1], "--beta", "auto")
    logits = shell_json("qbnorm", "--bank", paths[2], "--test", paths[3], "--beta", "auto")
    assert cosine["parameters"]["beta"] >= 1
    assert 0.01 < logits["parameters"]["beta"] < 2
    assert logits["after"]["R1"] > logits["before"]["R1"]
    result = shell("qbnorm", "--bank", paths[2], "--test", paths[3])
    assert "look like logits" in result.stderr
    with pytest.raises(HubnessError, match="no beta"):
        shell_json("qbnorm", "--bank", paths[0], "--test", paths[1], "--beta", "auto", "--method", "cent")


def test_text_puts_plain_figures_first(files):
    bank, test, _ = synthetic(16, captions=2)
    paths = files(bank=bank, test=test)
    lines = shell("qbnorm", "--bank", paths[0], "--test", paths[1]).stdout.splitlines()
    assert lines[0] == "120 captions ask for 60 videos"
    assert lines[2].split() == KEYS
    assert lines[3].startswith("none ")
    assert lines[4].startswith("querybank(bank.npy, 600 queries, method=dis, beta=20, k=1) ")
    assert lines[3].split()[1:] == [f"{value}" for value in plain_t2v(test, None).values()]
    assert any(line.startswith("skewness") for line in lines)


class Attack:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_a_hostile_pickle_does_nothing(files, tmp_path):
    bank, test, _ = synthetic(17, captions=2)
    paths = files("pkl", bank=bank, test=test, bad=Attack(tmp_path / "mark"))
    for words in (
        ["--bank", paths[2], "--test", paths[1]],
        ["--bank", paths[0], "--test", paths[2]],
        ["--bank", paths[0], "--test", paths[1], "--mask", paths[2]],
        ["--bank", paths[0], "--test", paths[1], "--counts", paths[2]],
    ):
        with pytest.raises(UnsafePickle, match="not loaded"):
            shell("qbnorm", *words)
    with pytest.raises(UnsafePickle, match="not loaded"):
        shell("hubness", paths[2])
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bank": np.zeros((0, 60))}, "empty"),
        ({"bank": np.zeros((5, 59))}, "59 columns but the test matrix has 60"),
        ({"bank": np.full((5, 60), np.nan)}, "row 0, column 0 is nan"),
        ({"bank": np.zeros(60)}, "a matrix"),
        ({"test": np.zeros((61, 60))}, "61 captions cannot be shared out evenly between 60 videos"),
        ({"test": np.full((60, 60), np.inf)}, "is inf"),
        ({"mask": np.ones((60, 3))}, "180 values for 120 captions"),
        ({"mask": np.zeros((60, 2))}, "leaves no caption"),
    ],
)
def test_matrices_that_do_not_fit(files, changes, message):
    bank, test, _ = synthetic(18, bank=20, captions=2)
    arrays = {"bank": bank, "test": test, "mask": np.ones((60, 2)), **changes}
    paths = files(**arrays)
    with pytest.raises(HubnessError, match=message):
        shell("qbnorm", "--bank", paths[0], "--test", paths[1], "--mask", paths[2])


def test_words_that_are_not_understood(files):
    bank, test, _ = synthetic(19, bank=20, captions=2)
    paths = files(bank=bank, test=test)
    words = ["qbnorm", "--bank", paths[0], "--test", paths[1]]
    assert "number or auto" in shell(*words, "--beta", "warm", code=2).stderr
    assert "they need it" in shell(*words, "--method", "dual-dis", code=2).stderr
    assert "they need it" in shell(*words, "--gallery-bank", paths[0], code=2).stderr
    assert "--bank is needed" in shell("qbnorm", "--test", paths[1], code=2).stderr
    with pytest.raises(HubnessError, match="choose one of"):
        shell(*words, "--method", "magic")
    with pytest.raises(HubnessError, match="beta must be"):
        shell(*words, "--beta", "nan")


@pytest.mark.parametrize("method", ["dual-is", "dual-dis", "dual-sinkhorn"])
def test_two_banks(files, method):
    bank, test, _ = synthetic(20, bank=40, captions=2)
    rng = np.random.default_rng(0)
    shape = (40, 15) if method == "dual-sinkhorn" else (15, 60)
    second = rng.uniform(-0.5, 0.5, shape).astype(bank.dtype)
    paths = files(bank=bank, test=test, second=second)
    words = ["--bank", paths[0], "--test", paths[1], "--gallery-bank", paths[2], "--method", method]
    facts = shell_json("qbnorm", *words)
    way = make_method(method)
    scores = ranking_scores(way.apply(test, way.fit(bank, second)))
    own = scores[np.arange(120), np.arange(120) // 2]
    ranks = 1 + (scores > own[:, None]).sum(axis=1) + ((scores == own[:, None]).sum(axis=1) - 1) / 2
    assert facts["after"]["MdR"] == pytest.approx(np.median(ranks))
    assert facts["after"]["R1"] == pytest.approx(100 * np.mean(ranks == 1))
