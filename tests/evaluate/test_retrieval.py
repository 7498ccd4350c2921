"""Ranks and figures against a rendering that sorts one query at a time."""

import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.evaluate import retrieval
from wordreel.evaluate.retrieval import arrange, figures, text_to_video, video_to_text


def naive_rank(scores, right):
    """Sort, find every place the right score could stand in, average; from 0."""
    ordered = sorted(scores, reverse=True)
    places = [place for place, value in enumerate(ordered) if value == right]
    return sum(places) / len(places)


def naive_figures(ranks):
    ranks = np.array(ranks)
    r1, r5, r10, r50 = (100 * np.mean(hit) for hit in (ranks == 0, ranks < 5, ranks < 10, ranks < 50))
    geometric = np.exp(np.mean(np.log([r1, r5, r10]))) if min(r1, r5, r10) > 0 else 0
    return r1, r5, r10, r50, np.median(ranks) + 1, np.mean(ranks) + 1, geometric


def naive_t2v(sims, counts, valid):
    ranks, row = [], 0
    for video, count in enumerate(counts):
        for _ in range(count):
            if valid[row]:
                ranks.append(naive_rank(sims[row].tolist(), sims[row, video]))
            row += 1
    return naive_figures(ranks)


def naive_v2t(sims, counts, valid):
    ranks, first = [], 0
    for video, count in enumerate(counts):
        shown = [sims[row, video] for row in range(len(sims)) if valid[row]]
        own = [sims[row, video] for row in range(first, first + count) if valid[row]]
        if own:
            ranks.append(min(naive_rank(shown, score) for score in own))
        first += count
    return naive_figures(ranks)


def values(found):
    return [getattr(found, name) for name in ("R1", "R5", "R10", "R50", "MdR", "MnR", "Geom")]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("block", [1, 50, 1 << 19])
def test_figures_equal_the_naive_ones(seed, block, monkeypatch):
    monkeypatch.setattr(retrieval.row_blocks, "__defaults__", (block,))
    rng = np.random.default_rng(seed)
    videos = int(rng.integers(1, 30))
    ragged = seed % 2 == 0
    counts = rng.integers(0, 5, videos) if ragged else np.full(videos, 4)
    counts[0] += 1 if ragged else 0
    total = int(counts.sum())
    sims = rng.integers(0, (6, 100, 10**6)[seed % 3], (total, videos)).astype(np.float32)
    sims += 3 * np.eye(videos, dtype=np.float32)[np.repeat(np.arange(videos), counts)]
    valid = rng.random(total) < (0.7 if seed % 4 < 2 else 1.1)
    valid[0] = True
    captions = arrange(videos, total, counts if ragged else None, valid)
    untouched = sims.copy()
    assert values(text_to_video(sims, captions)) == pytest.approx(naive_t2v(sims, counts, valid))
    assert values(video_to_text(sims, captions)) == pytest.approx(naive_v2t(sims, counts, valid))
    assert (sims == untouched).all()


def test_a_model_that_knows_nothing():
    found = text_to_video(np.zeros((6, 6)), arrange(6, 6))
    assert (found.R1, found.MdR, found.MnR, found.Geom) == (0, 3.5, 3.5, 0)
    assert video_to_text(np.zeros((12, 6)), arrange(6, 12)).MdR == 6.5


def test_a_two_way_tie_at_the_top_is_not_a_first_place():
    sims = np.eye(4)
    sims[0, 1] = 1
    found = text_to_video(sims, arrange(4, 4))
    assert (found.R1, found.R5, found.MnR) == (75, 100, 1.125)


def test_a_tie_across_the_fifth_place_counts():
    assert figures(np.array([4.5])).R5 == 100
    assert figures(np.array([5.0])).R5 == 0


def test_perfect_is_a_hundred():
    assert values(text_to_video(np.eye(7), arrange(7, 7))) == [100, 100, 100, 100, 1, 1, 100]


def test_a_mask_drops_captions_in_both_directions():
    sims = np.array([[1, 0], [0, 1], [0, 9], [1, 0]], np.float32)
    masked = arrange(2, 4, mask=np.array([[1, 0], [1, 0]]))
    assert text_to_video(sims, arrange(2, 4)).R1 == 50
    assert text_to_video(sims, masked).R1 == 100
    swapped = np.array([[1, 0], [0, 10], [0, 9], [1, 0]], np.float32)
    assert video_to_text(swapped, arrange(2, 4)).R1 == 0
    assert video_to_text(swapped, masked).R1 == 100


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
    with pytest.raises(HubnessError, match=r"\[4, 2\] matrix, not \[2, 4\]"):
        text_to_video(np.zeros((2, 4)), arrange(2, 4))
    with pytest.raises(HubnessError, match="right answer"):
        figures(np.array([np.nan]))
