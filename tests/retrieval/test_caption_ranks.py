"""Ranks and figures against a rendering that sorts one query at a time."""

import tracemalloc

import numpy as np
import pytest

from wordreel.errors import EvaluationError, HubnessError
from wordreel.retrieval import caption_ranks as retrieval
from wordreel.retrieval.caption_ranks import (
    Captions,
    arrange,
    best_own_ranks,
    text_to_video,
    text_to_video_ranks,
    video_to_text,
    video_to_text_ranks,
)
from wordreel.retrieval.metrics import retrieval_metrics
from wordreel.retrieval.ranks import ranks_of


def naive_rank(scores, right):
    """Sort, find every place the right score could stand in, and take their mean."""
    ordered = sorted(scores, reverse=True)
    places = [place for place, value in enumerate(ordered, 1) if value == right]
    return sum(places) / len(places)


def naive_t2v(sims, counts, valid):
    ranks, row = [], 0
    for video, count in enumerate(counts):
        for _ in range(count):
            ranks.append(naive_rank(sims[row], sims[row][video]) if valid[row] else np.nan)
            row += 1
    return ranks


def own_captions(counts, valid):
    first = 0
    for count in counts:
        yield [row for row in range(first, first + count) if valid[row]]
        first += count


def naive_v2t(sims, counts, valid):
    """The least of its captions' ranks among all valid captions."""
    ranks = []
    for video, own in enumerate(own_captions(counts, valid)):
        shown = [row[video] for row, used in zip(sims, valid, strict=True) if used]
        each = [naive_rank(shown, sims[row][video]) for row in own]
        ranks.append(min(each, default=np.nan))
    return ranks


def naive_v2t_groups(sims, counts, valid):
    """The rank of its group among the groups; a group scores as its best caption."""
    groups = list(own_captions(counts, valid))
    ranks = []
    for video, own in enumerate(groups):
        shown = [max(sims[row][video] for row in group) for group in groups if group]
        mine = max((sims[row][video] for row in own), default=None)
        ranks.append(np.nan if mine is None else naive_rank(shown, mine))
    return ranks


def random_case(rng):
    """Few or many distinct scores; even or ragged captions; videos without any; masks or none."""
    videos = int(rng.integers(1, 14))
    ragged = rng.random() < 0.6
    counts = rng.integers(0, 5, videos) if ragged else np.full(videos, rng.integers(1, 5))
    counts[rng.integers(videos)] += 1 if ragged else 0
    total = int(counts.sum())
    sims = rng.integers(0, rng.choice([2, 6, 50, 10**6]), (total, videos)).astype(np.float32)
    sims[np.arange(total), np.repeat(np.arange(videos), counts)] += rng.integers(0, 4)
    valid = rng.random(total) < rng.choice([0.4, 0.8, 1.1])
    valid[rng.integers(total)] = True
    mask = None if valid.all() and rng.random() < 0.5 else valid
    return sims, counts, valid, arrange(videos, total, counts if ragged else None, mask)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("block", [1, 9, 40, 1 << 19])
def test_thousands_of_random_cases_equal_the_naive_ranks(part, block, monkeypatch):
    monkeypatch.setattr(retrieval.row_blocks, "__defaults__", (block,))
    rng = np.random.default_rng((part, block))
    for case in range(250):
        sims, counts, valid, captions = random_case(rng)
        given = np.asfortranarray(sims) if case % 2 else sims
        plain = sims.tolist()
        same = np.testing.assert_array_equal
        same(text_to_video_ranks(given, captions), naive_t2v(plain, counts, valid))
        wanted = naive_v2t(plain, counts, valid)
        same(video_to_text_ranks(given, captions), wanted)
        same(best_own_ranks(sims.T[:, valid], captions.owner[valid]), wanted)
        groups = naive_v2t_groups(plain, counts, valid)
        same(video_to_text_ranks(given, captions, protocol="clip"), groups)
        same(given, plain)  # nothing was written into


def test_figures_are_those_of_the_ranks():
    rng = np.random.default_rng(3)
    sims, _, _, captions = random_case(rng)
    assert text_to_video(sims, captions) == retrieval_metrics(text_to_video_ranks(sims, captions))
    for protocol in ("ce", "clip"):
        ranks = video_to_text_ranks(sims, captions, protocol=protocol)
        assert video_to_text(sims, captions, protocol=protocol) == retrieval_metrics(ranks)


def test_a_model_that_knows_nothing():
    found = text_to_video(np.zeros((6, 6)), arrange(6, 6))
    assert (found.r1, found.median_rank, found.mean_rank, found.geometric_mean) == (0, 3.5, 3.5, 0)
    assert video_to_text(np.zeros((12, 6)), arrange(6, 12)).median_rank == 6.5


def test_a_two_way_tie_at_the_top_is_not_a_first_place():
    sims = np.eye(4)
    sims[0, 1] = 1
    found = text_to_video(sims, arrange(4, 4))
    assert (found.r1, found.r5, found.mean_rank) == (75, 100, 1.125)


def test_the_two_protocols_differ_where_a_video_has_many_captions():
    # Three captions of the first video stand before the second video's only one.
    sims = np.array([[9, 5], [9, 4], [9, 3], [0, 2]], np.float32)
    captions = arrange(2, 4, [3, 1])
    assert video_to_text_ranks(sims, captions).tolist() == [2, 4]  # its three captions are tied
    assert video_to_text_ranks(sims, captions, protocol="clip").tolist() == [1, 2]


def test_one_caption_each_makes_the_protocols_one():
    sims = np.random.default_rng(1).normal(size=(40, 40))
    ce, clip = (video_to_text(sims, arrange(40, 40), protocol=name) for name in ("ce", "clip"))
    assert ce == clip == text_to_video(sims.T, arrange(40, 40))


@pytest.mark.parametrize(("videos", "r1", "r5", "middle"), [(1000, 0.1, 0.5, 500), (4917, 0.02, 0.1, 2458.5)])
def test_random_scores_give_the_random_baselines(videos, r1, r5, middle):
    # As printed by Gabeur et al. 2020, tables 7 and 8; both within four standard errors.
    captions = 12 * videos
    owner = np.repeat(np.arange(videos), 12)
    rng = np.random.default_rng(0)
    ranks = np.concatenate(
        [ranks_of(rng.random((len(part), videos), np.float32), part) for part in np.array_split(owner, 40)]
    )
    found = retrieval_metrics(ranks)

    def error(per_cent):
        return 4 * np.sqrt(per_cent * (100 - per_cent) / captions)

    assert found.r1 == pytest.approx(r1, abs=error(r1))
    assert found.r5 == pytest.approx(r5, abs=error(r5))
    spread = 4 * videos / 2 / np.sqrt(captions)
    assert found.median_rank == pytest.approx(middle, abs=spread)
    assert found.mean_rank == pytest.approx(middle, abs=spread)


def test_a_mapped_matrix_is_read_as_it_lies(tmp_path):
    sims = np.random.default_rng(0).normal(size=(600, 30)).astype(np.float32)
    np.save(tmp_path / "sims.npy", sims)
    mapped = np.load(tmp_path / "sims.npy", mmap_mode="r")
    captions = arrange(30, 600)
    assert text_to_video(mapped, captions) == text_to_video(sims, captions)
    for protocol in ("ce", "clip"):
        wanted = video_to_text(sims, captions, protocol=protocol)
        assert video_to_text(mapped, captions, protocol=protocol) == wanted
        assert video_to_text(np.asfortranarray(mapped), captions, protocol=protocol) == wanted


@pytest.mark.parametrize("layout", ["C", "F"])
def test_nothing_like_the_matrix_is_ever_copied(tmp_path, layout):
    path = tmp_path / "sims.npy"
    np.save(path, np.asarray(np.random.default_rng(0).random((8000, 1000), np.float32), order=layout))
    mapped = np.load(path, mmap_mode="r")
    mask = np.ones(8000)
    mask[::50] = 0
    captions = arrange(1000, 8000, mask=mask)
    tracemalloc.start()
    try:
        text_to_video(mapped, captions)
        video_to_text(mapped, captions)
        video_to_text(mapped, captions, protocol="clip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < mapped.nbytes / 4


def test_captions_that_score_nothing_are_last(monkeypatch):
    monkeypatch.setattr(retrieval.row_blocks, "__defaults__", (4,))
    sims = np.array([[np.nan, 0], [np.nan, 1], [3, 2], [4, 5]])
    captions = arrange(2, 4)
    assert text_to_video_ranks(sims, captions).tolist() == [2, 2, 2, 1]
    for layout in (sims, np.asfortranarray(sims)):
        assert video_to_text_ranks(layout, captions).tolist() == [3.5, 1]
        assert video_to_text_ranks(layout, captions, protocol="clip").tolist() == [2, 1]


def test_perfect_is_a_hundred():
    found = text_to_video(np.eye(7), arrange(7, 7))
    assert (found.r1, found.r50, found.median_rank, found.mean_rank) == (100, 100, 1, 1)
    assert (found.geometric_mean, found.rsum) == (pytest.approx(100), 300)


def test_a_mask_drops_captions_in_both_directions():
    sims = np.array([[1, 0], [0, 1], [0, 9], [1, 0]], np.float32)
    masked = arrange(2, 4, mask=np.array([[1, 0], [1, 0]]))
    assert text_to_video(sims, arrange(2, 4)).r1 == 50
    assert text_to_video(sims, masked).r1 == 100
    swapped = np.array([[1, 0], [0, 10], [0, 9], [1, 0]], np.float32)
    assert video_to_text(swapped, arrange(2, 4)).r1 == 0
    assert video_to_text(swapped, masked).r1 == 100


def test_short_names_of_the_same_figures():
    full = retrieval_metrics(np.array([1, 5.5, 21, 61]))
    found = full.table()
    assert (full.r1, full.r5, full.r10, full.r50) == (found["R1"], found["R5"], found["R10"], found["R50"])
    assert (found["MdR"], found["MnR"]) == (full.median_rank, full.mean_rank)
    assert (found["Geom"], found["Rsum"]) == (full.geometric_mean, full.rsum)
    assert list(full.table(["MdR", "R5"])) == ["MdR", "R5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, 10), "evenly"),
        ((0, 0), "evenly"),
        ((2, 4, [1, 2]), "add up to 4"),
        ((2, 4, [1, 1, 2]), "one per video"),
        ((2, 4, [5, -1]), "one per video"),
        ((2, 4, [2**62, 4 - 2**62]), "one per video"),
        ((2, 4, [1.5, 2.5]), "whole"),
        ((2, 4, ["a", "b"]), "whole"),
        ((2, 4, None, [1, 1, 1]), "3 values for 4"),
        ((2, 4, None, [1, 1, 1, 2]), "only 1"),
        ((2, 4, None, [1, 1, 1, np.nan]), "only 1"),
        ((2, 4, None, [0, 0, 0, 0]), "leaves no caption"),
    ],
)
def test_captions_that_cannot_be_arranged(arguments, message):
    with pytest.raises(HubnessError, match=message):
        arrange(*arguments)


def test_matrices_of_another_shape_are_refused():
    with pytest.raises(EvaluationError, match=r"\[4, 2\] matrix, not \[2, 4\]"):
        text_to_video(np.zeros((2, 4)), arrange(2, 4))
    with pytest.raises(EvaluationError, match="right answer"):
        retrieval_metrics(np.array([np.nan]))
    with pytest.raises(EvaluationError, match="ce and clip"):
        video_to_text(np.zeros((4, 2)), arrange(2, 4), protocol="other")
    with pytest.raises(EvaluationError, match="stand together"):
        video_to_text(np.zeros((3, 2)), Captions(2, np.array([0, 1, 0]), np.ones(3, bool)))
