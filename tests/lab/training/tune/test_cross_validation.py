"""Held-out captions decide: what helps is kept, nonsense is refused."""

from dataclasses import replace

import numpy as np
import pytest
from tests.lab.training.tune.toys import toy_data

from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune import cross_validation as module
from wordreel.lab.training.tune.cross_validation import choose, cross_validate, folds, without_idle_words
from wordreel.lab.training.tune.heads import Heads, text_vectors, video_vectors
from wordreel.lab.training.tune.ranking import everyday_best, overlap, ranks
from wordreel.models.similarity import mixture
from wordreel.retrieval.ranks import ranks_of

SMALL = TuneSettings(steps=60, batch=16, anchor_batch=8, anchor=0.1, kept_at_least=0.0, lr=0.02, word_lr=0.3)


def slow_ranks(found, captions, heads):
    """The whole mixture at once, as an index scores it; then the best item of each video."""
    texts = found.texts.at(captions)
    queries = np.concatenate([text_vectors(heads, texts)[:, None], texts.others], axis=1)
    videos = np.concatenate([video_vectors(heads, found.read)[:, None], found.others], axis=1)
    scores = mixture(queries, np.tile(found.weights, (len(captions), 1)), videos, found.available)
    for caption, item, value in zip(*found.bonus, strict=True):
        if caption in captions:
            scores[list(captions).index(caption), item] += value
    best = np.stack([scores[:, found.video == v].max(axis=1) for v in range(found.videos)], axis=1)
    return ranks_of(best, found.owner[captions])


def test_ranks_are_those_of_a_search(monkeypatch):
    data = toy_data()
    heads = [Heads.of(data.tower, len(data.words)), Heads.of(toy_data(seed=9).tower, len(data.words))]
    captions = np.array([0, 1, 4, 7, 20, 50, 99])
    monkeypatch.setattr("wordreel.lab.training.tune.ranking.AT_ONCE", 3)
    for row, one in zip(ranks(data, captions, heads), heads, strict=True):
        np.testing.assert_array_equal(row, slow_ranks(data, captions, one))


def test_what_helps_is_better():
    result = cross_validate(toy_data(captioned=48), SMALL)
    assert result.better
    assert result.gain.low > 0
    assert result.after.r10 > result.before.r10 + 20
    assert min(result.strengths) > 0


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_captions_are_refused(seed):
    assert not cross_validate(
        toy_data(captioned=48, seed=seed, shuffled=True), replace(SMALL, seed=seed)
    ).better


def test_every_video_judges_once_and_teaches_nothing_there():
    for videos in (20, 33, 101):
        parts = folds(videos, TuneSettings())
        np.testing.assert_array_equal(
            np.sort(np.concatenate([part.judge for part in parts])), np.arange(videos)
        )
        for part in parts:
            together = np.concatenate([part.learn, part.choose, part.judge])
            np.testing.assert_array_equal(np.sort(together), np.arange(videos))
            assert min(map(len, (part.learn, part.choose, part.judge))) >= 3


def test_no_part_sees_captions_of_another(monkeypatch):
    """What is given to learn, to choose and to judge, by the captions that are really read."""
    seen = {}

    def learn(data, videos, settings, seed):
        seen["learn"] = set(data.owner[data.captions_of(videos)])
        return Heads.of(data.tower, len(data.words))

    def watched(data, captions, candidates):
        key = "choose" if len(candidates) != 2 else "judge"
        others = [seen[name] for name in ("learn", "choose") if name in seen and name != key]
        mine = set(data.owner[captions])
        assert all(not mine & other for other in others)
        seen[key] = mine
        return ranks(data, captions, candidates)

    monkeypatch.setattr(module, "fit_heads", learn)
    monkeypatch.setattr(module, "ranks", watched)
    result = cross_validate(toy_data(), SMALL)
    assert set(seen) == {"learn", "choose", "judge"}
    assert result.strengths == (0.0,) * 5  # equal candidates: the least
    assert not result.better


def test_strengths_that_move_everyday_queries_are_not_taken():
    data = toy_data(captioned=48)
    settings = replace(SMALL, anchor=0.0)
    start = Heads.of(data.tower, len(data.words))
    fold = folds(48, settings)[0]
    end = module.fit_heads(data, fold.learn, settings, 0)
    usual = everyday_best(data, start)
    assert choose(data, start, end, fold, usual, settings) > 0
    assert choose(data, start, end, fold, usual, replace(settings, kept_at_least=1.0)) == 0


def test_everyday_hits():
    data = toy_data()
    start = Heads.of(data.tower, len(data.words))
    assert overlap(everyday_best(data, start), everyday_best(data, start)) == 1
    queries = np.arange(len(data.everyday))
    texts = replace(data, texts=data.everyday, owner=np.zeros(len(queries), np.int64), bonus=((), (), ()))
    texts = replace(texts, bonus=tuple(np.zeros(0, kind) for kind in (np.int64, np.int64, np.float32)))
    for video in range(3):  # among the ten best by their ranks
        best = ranks(replace(texts, owner=np.full(len(queries), video)), queries, [start])[0]
        among = (everyday_best(data, start) == video).any(axis=1)
        np.testing.assert_array_equal(among, best <= 10)


def test_idle_words_are_left_out():
    data = toy_data()
    heads = Heads.of(data.tower, 3)
    heads.words[1] = 2
    few, words = without_idle_words(heads, ("a", "b", "c"))
    assert words == ("b",)
    np.testing.assert_array_equal(few.words, heads.words[1:2])
