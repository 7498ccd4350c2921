from dataclasses import replace

import numpy as np
import pytest

from wordreel.errors import EvaluationError
from wordreel.lab.evaluate.runs import measure
from wordreel.lab.reports import report_files
from wordreel.lab.reports.comparison import pairs_of
from wordreel.lab.reports.report import ReportRequest, of_matrix
from wordreel.lab.reports.report_files import SavedResult
from wordreel.retrieval.caption_ranks import Captions, arrange


def saved(order, name="a", seed=0, protocol="ce", drop=0, extra_text="", kind="library", videos=8, each=3):
    """A result whose videos are listed in `order`; scores depend on names only, not on the order."""
    texts = {v: [f"caption {c} of {v}" for c in range(each)] for v in range(videos)}
    if extra_text:
        texts[0][0] = extra_text
    names = [v for v in order if v < videos - drop]
    rng = np.random.default_rng(seed)
    score = rng.normal(size=(videos, each, videos))
    sims = np.array([[score[v, c, w] + (v == w) for w in names] for v in names for c in range(each)])
    owner = np.repeat(np.arange(len(names)), each)
    runs = measure(sims, Captions(len(names), owner, np.ones(len(owner), bool)), protocol=protocol)
    queries = report_files.queries_of(owner, [t for v in names for t in texts[v]], [f"v{v}" for v in names])
    facts = report_files.facts_of(name, "", [], {"kind": kind}, runs)
    return SavedResult(name, facts, queries, tuple(run.ranks for run in runs))


def test_the_order_of_the_dataset_does_not_matter():
    plain, shuffled = saved(range(8)), saved([3, 1, 7, 0, 2, 6, 5, 4], "b")
    texts, videos = pairs_of(plain, shuffled)
    np.testing.assert_array_equal(texts.ranks_a, texts.ranks_b)
    np.testing.assert_array_equal(videos.ranks_a, videos.ranks_b)
    assert np.bincount(texts.groups).tolist() == [3] * 8
    assert videos.groups is None
    assert (texts.direction, videos.protocol) == ("t2v", "ce")
    other = pairs_of(plain, saved([3, 1, 7, 0, 2, 6, 5, 4], "b", seed=1))[0]
    assert (other.ranks_a != other.ranks_b).any()
    np.testing.assert_array_equal(other.ranks_a, texts.ranks_a)


def test_what_differs_is_named():
    with pytest.raises(EvaluationError, match="8 and 7 videos; only in a: v7"):
        pairs_of(saved(range(8)), saved(range(8), "b", drop=1))
    with pytest.raises(
        EvaluationError, match=r"different queries.*only in a: one of v0; only in b: one of v0"
    ):
        pairs_of(saved(range(8)), saved(range(8), "b", extra_text="another"))
    with pytest.raises(EvaluationError, match=r"v2t \(ce\).*v2t \(clip\)"):
        pairs_of(saved(range(8)), saved(range(8), "b", protocol="clip"))
    with pytest.raises(EvaluationError, match="b is of a bare matrix"):
        pairs_of(saved(range(8)), saved(range(8), "b", kind="matrix"))


def test_runs_can_be_chosen():
    a, b = saved(range(8)), saved(range(8), "b", seed=1)
    (only,) = pairs_of(a, b, run_a=2, run_b=2)
    assert only.direction == "v2t"
    assert pairs_of(a, b, run_b=1)[0].direction == "t2v"
    with pytest.raises(EvaluationError, match="runs 1 to 2"):
        pairs_of(a, b, run_a=3)
    with pytest.raises(EvaluationError, match="cannot be compared"):
        pairs_of(a, b, run_a=1, run_b=2)


def test_nothing_in_common():
    sims = np.eye(4)
    one, other = (
        of_matrix(sims, arrange(4, 4), ReportRequest("x", "", [], directions=(way,)))
        for way in ("t2v", "v2t")
    )
    first, second = (
        SavedResult(name, report.facts, report.queries, tuple(run.ranks for run in report.runs))
        for name, report in (("a", one), ("b", other))
    )
    with pytest.raises(EvaluationError, match="no direction in common"):
        pairs_of(first, second)
    with pytest.raises(EvaluationError, match="no direction in common"):
        pairs_of(first, replace(second), run_a=1)
