"""Learning by hand-written gradients, against differences of the loss."""

from dataclasses import replace

import numpy as np
import pytest
from tests.lab.training.tune.toys import KINDS, toy_data

from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune import fit_heads as module
from wordreel.lab.training.tune.fit_heads import fit_heads, words_learned
from wordreel.lab.training.tune.heads import Heads, between, mean, text_vectors, video_vectors

SMALL = TuneSettings(steps=40, batch=16, anchor_batch=8, dropout=0.0, word_dropout=0.0, lr=0.02, word_lr=0.3)


def log_softmax(x, axis):
    x = x - x.max(axis=axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


def wide(heads):
    return Heads(**{name: array.astype(np.float64) for name, array in heads.arrays().items()})


def slow_unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def slow_texts(heads, texts):
    made = texts.x @ heads.straight.T + heads.straight_bias + texts.deep
    for row, ids in enumerate(texts.words):
        for place, word in enumerate(ids):
            if word >= 0:
                made[row] = made[row] + heads.words[word] * texts.share[row, place]
    return slow_unit(made)


def pairs_loss(heads, found, texts, items, settings):
    """Caption by caption and video by video, straight from the formula."""
    said = slow_texts(heads, texts)
    seen = slow_unit(found.read[items] @ heads.out.T + heads.out_bias)
    scores = np.zeros((len(said), len(items)))
    for q in range(len(said)):
        for v, item in enumerate(items):
            there = found.available[item]
            total = (found.weights * there).sum()
            score = found.weights[0] * there[0] * (said[q] @ seen[v])
            for expert in range(1, len(there)):
                if there[expert]:
                    score += found.weights[expert] * (
                        texts.others[q, expert - 1] @ found.others[item, expert - 1]
                    )
            scores[q, v] = score / total if total else 0
    scores /= settings.temperature
    return -(np.diag(log_softmax(scores, 1)) + np.diag(log_softmax(scores, 0))).mean()


def anchor_loss(heads, found, texts, items, old, settings):
    seen = slow_unit(found.read[items] @ heads.out.T + heads.out_bias)
    now = log_softmax(slow_texts(heads, texts) @ seen.T / settings.anchor_temperature, 1)
    before = log_softmax(old / settings.anchor_temperature, 1)
    return settings.anchor * (np.exp(before) * (before - now)).sum(axis=1).mean()


@pytest.mark.parametrize("part", ["pairs", "anchor"])
def test_gradients_are_those_of_the_loss(part):
    data = toy_data()
    rng = np.random.default_rng(1)
    settings = replace(SMALL, temperature=0.5, anchor_temperature=0.5, anchor=0.7)
    start = Heads.of(data.tower, len(data.words))
    heads = replace(start, words=rng.normal(size=start.words.shape).astype(np.float32))
    items = data.whole[:9]
    if part == "pairs":
        texts = data.texts.at(3 * np.arange(9))
        gradients = module._pairs_gradient(heads, data, texts, data.read[items], items, settings)
        loss = lambda h: pairs_loss(h, data, texts, items, settings)  # noqa: E731
    else:
        texts = data.texts.at(np.arange(20, 26))
        old = rng.normal(size=(6, 9)).astype(np.float32)
        gradients = module._anchor_gradient(heads, texts, data.read[items], old, settings)
        loss = lambda h: anchor_loss(h, data, texts, items, old, settings)  # noqa: E731
    for name, array in wide(heads).arrays().items():
        for _ in range(6):
            step = rng.normal(size=array.shape)
            sides = [loss(replace(wide(heads), **{name: array + sign * 1e-5 * step})) for sign in (1.0, -1.0)]
            np.testing.assert_allclose(
                (gradients[name] * step).sum(), (sides[0] - sides[1]) / 2e-5, rtol=2e-3, atol=2e-4
            )


def test_own_words_are_learned_and_everyday_queries_stay():
    data = toy_data()
    start = Heads.of(data.tower, len(data.words))
    loose = fit_heads(data, np.arange(24), replace(SMALL, anchor=0.0), 0)
    tight = fit_heads(data, np.arange(24), replace(SMALL, anchor=20.0), 0)

    def right(heads):
        """How much nearer captions of videos not shown are to their kind than to others."""
        asked = data.captions_of(np.arange(24, 36))
        scores = text_vectors(heads, data.texts.at(asked)) @ video_vectors(heads, data.read[data.whole]).T
        same = (data.owner[asked][:, None] - np.arange(data.videos)) % len(KINDS) == 0
        return scores[same].mean() - scores[~same].mean()

    def moved(heads):
        seen = [video_vectors(h, data.read) for h in (start, heads)]
        said = [text_vectors(h, data.everyday) for h in (start, heads)]
        return np.abs(said[0] @ seen[0].T - said[1] @ seen[1].T).mean()

    assert right(loose) > right(start) + 0.3
    assert right(tight) > right(start)
    assert moved(tight) < 0.7 * moved(loose)


def test_same_seed_same_heads():
    data = toy_data()
    one, two, other = (fit_heads(data, np.arange(20), SMALL, seed) for seed in (3, 3, 4))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])
    assert not np.array_equal(one.out, other.out)


def test_videos_that_are_held_out_teach_nothing():
    """Whatever their captions and pictures are, the heads are the same."""
    data = toy_data()
    learn = np.arange(20)
    rng = np.random.default_rng(5)
    held = data.captions_of(np.arange(20, 36))
    x, read, words = data.texts.x.copy(), data.read.copy(), data.texts.words.copy()
    x[held] = rng.normal(size=x[held].shape)
    words[held] = rng.permutation(words[held])
    read[40:] = rng.normal(size=read[40:].shape)
    changed = replace(data, texts=replace(data.texts, x=x, words=words), read=read)
    for name, array in fit_heads(data, learn, SMALL, 0).arrays().items():
        np.testing.assert_array_equal(array, fit_heads(changed, learn, SMALL, 0).arrays()[name])


def test_only_words_of_two_videos_are_learned():
    data = toy_data()
    few = np.arange(7)  # every kind once, the first kind twice
    learned = {word for word, yes in zip(data.words, words_learned(data, few), strict=True) if yes}
    assert "zorp" in learned
    assert not learned & set(KINDS[1:])
    heads = fit_heads(data, few, SMALL, 0)
    assert not heads.words[~words_learned(data, few)].any()
    assert heads.words[words_learned(data, few)].any()


def test_strength_and_mean():
    data = toy_data()
    start, end = Heads.of(data.tower, len(data.words)), fit_heads(data, np.arange(20), SMALL, 0)
    assert between(start, end, 0.0) is start
    np.testing.assert_allclose(between(start, end, 1.0).out, end.out, atol=1e-6)
    np.testing.assert_allclose(mean([start, end]).out, between(start, end, 0.5).out, atol=1e-6)
    tower = end.into(data.tower)
    np.testing.assert_array_equal(tower["caption.straight.weight"], end.straight)
    assert set(tower) == {*data.tower, "words"}
