import numpy as np
import pytest

from wordreel.errors import EvaluationError, HubnessError
from wordreel.hubness import make_method
from wordreel.lab.evaluate.normalised_rankings import Normalisation, rank_normalised
from wordreel.lab.evaluate.runs import measure
from wordreel.lab.reports.tables import by_expert, by_length
from wordreel.retrieval.caption_ranks import arrange


def case(seed, videos=30, each=4, ties=True, masked=False):
    rng = np.random.default_rng(seed)
    sims = rng.normal(size=(videos * each, videos)).astype(np.float32)
    sims[np.arange(videos * each), np.repeat(np.arange(videos), each)] += 1.5
    if ties:
        sims = np.round(sims * 2) / 2
    mask = rng.random((videos, each)) < 0.7 if masked else None
    if mask is not None:
        mask[0] = False  # a video without a caption
    return sims / 8, arrange(videos, videos * each, mask=mask)  # of the size of cosines


def rank(scores, right):
    above = sum(s > right for s in scores)
    same = sum(s == right for s in scores) - 1
    return 1 + above + same / 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("protocol", ["ce", "clip"])
def test_runs_equal_a_slow_twin(seed, masked, protocol):
    sims, captions = case(seed, masked=masked)
    texts, videos = measure(sims, captions, protocol=protocol)
    for query, owner in enumerate(captions.owner):
        if captions.valid[query]:
            assert texts.ranks[query] == rank(sims[query], sims[query, owner])
        else:
            assert np.isnan(texts.ranks[query])
    valid = np.flatnonzero(captions.valid)
    for video in range(captions.videos):
        mine = [c for c in valid if captions.owner[c] == video]
        if not mine:
            assert np.isnan(videos.ranks[video])
            continue
        if protocol == "ce":
            slow = min(rank(sims[valid, video], sims[c, video]) for c in mine)
        else:
            groups = {
                v: max(sims[c, video] for c in valid if captions.owner[c] == v)
                for v in set(captions.owner[valid])
            }
            slow = rank(list(groups.values()), groups[video])
        assert videos.ranks[video] == slow
    assert (texts.postprocessing, videos.postprocessing) == ("none", "none")
    assert texts.metrics.queries == captions.valid.sum()
    assert videos.items == (len(valid) if protocol == "ce" else len(set(captions.owner[valid])))


@pytest.mark.parametrize("method", ["dis", "is", "csls", "gc", "test-is", "dsl"])
def test_a_normalised_run_comes_last_and_equals_qbnorm(method):
    sims, captions = case(3, masked=True)
    bank = np.random.default_rng(9).normal(0, 0.2, (80, 30)).astype(np.float32)
    way = make_method(method)
    how = Normalisation(way, None if way.transductive else bank, "made")
    runs = measure(sims, captions, normalisations=[how])
    assert [run.postprocessing for run in runs] == ["none", "none", how.label]
    found = rank_normalised(way, bank, sims, captions)
    after = runs[-1]
    assert (after.metrics.r1, after.metrics.mean_rank) == pytest.approx(
        (found.after.metrics.r1, found.after.metrics.mean_rank)
    )
    assert after.hubness == found.after.hubness
    assert after.occurrences.tolist() == found.after.occurrences.tolist()
    assert runs[0].occurrences.tolist() == found.before.occurrences.tolist()


def test_what_does_not_fit_is_refused():
    sims, captions = case(0)
    with pytest.raises(EvaluationError, match="rows are captions"):
        measure(sims.T, captions)
    with pytest.raises(EvaluationError, match="--bank"):
        measure(sims, captions, normalisations=[Normalisation(make_method("dis"))])
    with pytest.raises(HubnessError, match="29 columns"):
        measure(
            sims,
            captions,
            normalisations=[Normalisation(make_method("dis"), np.zeros((5, 29), np.float32))],
        )


def test_directions_are_chosen():
    sims, captions = case(1)
    assert [run.direction for run in measure(sims, captions, ["v2t"])] == ["v2t"]
    assert [run.direction for run in measure(sims, captions, ["t2v"])] == ["t2v"]


def test_breakdowns_share_out_every_query():
    sims, captions = case(2)
    run = measure(sims, captions)[0]
    rng = np.random.default_rng(0)
    texts = [" ".join("w" * int(n)) for n in rng.integers(0, 25, len(captions))]
    groups = by_length(run, texts)
    assert sum(group["queries"] for group in groups) == len(captions)
    short = [run.ranks[n] for n, text in enumerate(texts) if len(text.split()) <= 4]
    first = groups[0]
    assert (first["name"], first["queries"]) == ("1–4 words", len(short))
    assert first["MdR"] == np.median(short)
    heard = rng.random(30) < 0.5
    there, absent = by_expert(run, captions.owner, {"speech": heard.tolist()})
    assert there["name"] == "speech: there"
    assert there["queries"] + absent["queries"] == len(captions)
    right = [run.ranks[n] < 11 for n in range(len(captions)) if not heard[captions.owner[n]]]
    assert pytest.approx(100 * np.mean(right)) == absent["R10"]


def test_one_video_alone():
    runs = measure(np.ones((3, 1)), arrange(1, 3))
    assert [run.metrics.r1 for run in runs] == [100.0, 0.0]  # three captions tie for the first place
