"""Learning the heads: pairs of a video and one of its captions, told apart from the other pairs of a batch.

    s(q, v) = (w₀ ⟨text, video⟩ + rest) / z        what search ranks by; rest and z are the bridge's rows'
    loss    = −log softmax(s / τ) of the pair, along rows and along columns
              + anchor · KL(before ‖ now) of everyday queries over the batch's videos

The gradient is written out: two products, two projections off the unit sphere. Only words that two or more
of the training videos have are learned; the rest of the table stays zero.
"""

from __future__ import annotations

import numpy as np

from wordreel.models.reel.own_words import MOST
from wordreel.training.settings import TuneSettings
from wordreel.training.tune.heads import (
    Heads,
    TextInputs,
    before_unit,
    text_vectors,
    video_vectors,
    with_unit,
)
from wordreel.training.tune.tune_data import TuneData
from wordreel.types import Bool, Float32, Int64

BETAS = (0.9, 0.98)
TINY = 1e-8


def fit_heads(data: TuneData, videos: Int64, settings: TuneSettings, seed: int) -> Heads:
    """Heads learned from the captions of some videos alone."""
    rng = np.random.default_rng(seed)
    start = heads = Heads.of(data.tower, len(data.words))
    captions = data.captions_of(videos)
    order = captions[np.argsort(data.owner[captions], kind="stable")]
    many = np.bincount(data.owner[captions], minlength=data.videos)
    first = np.cumsum(many) - many
    learned = words_learned(data, videos)
    drawn = videos[many[videos] > 0]
    everyday = text_vectors(start, data.everyday)
    before = video_vectors(start, data.read)
    optimiser = Adam(heads, settings)
    for step in range(settings.steps):
        some = rng.permutation(drawn)[: settings.batch]
        rows = order[first[some] + (rng.random(len(some)) * many[some]).astype(np.int64)]
        items = data.whole[some]
        texts, read = _dropped(data.texts.at(rows), data.read[items], settings, rng)
        slopes = _pairs(heads, data, texts, read, items, settings)
        if settings.anchor:
            asks = rng.permutation(len(data.everyday))[: settings.anchor_batch]
            old = everyday[asks] @ before[items].T
            held = _anchor(heads, data.everyday.at(asks), data.read[items], old, settings)
            slopes = {name: slope + held[name] for name, slope in slopes.items()}
        slopes["words"][~learned] = 0
        heads = optimiser.step(heads, slopes, step)
    return heads


def words_learned(data: TuneData, videos: Int64) -> Bool:
    """`[words]`: which stand in captions of two or more of these videos."""
    rows = data.captions_of(videos)
    ids = data.texts.words[rows]
    owner = np.repeat(data.owner[rows], MOST)[ids.ravel() >= 0]
    pairs = np.unique(np.stack([ids.ravel()[ids.ravel() >= 0], owner]), axis=1)
    return np.asarray(np.bincount(pairs[0], minlength=len(data.words)) >= 2)


def _pairs(
    heads: Heads, data: TuneData, texts: TextInputs, read: Float32, items: Int64, settings: TuneSettings
) -> dict[str, Float32]:
    """The gradient of the pairs' loss."""
    text, video = _units(heads, texts, read)
    rest, share = data.rest(texts.others, items)
    scores = (text[0] @ video[0].T * share + rest) / settings.temperature
    slope = _softmax(scores, 1) + _softmax(scores, 0)
    slope[np.diag_indices(len(slope))] -= 2
    slope *= share / (settings.temperature * len(slope))
    return _back(heads, texts, read, text, video, slope)


def _units(heads: Heads, texts: TextInputs, read: Float32) -> tuple[tuple[Float32, Float32], ...]:
    """Both sides at unit length, each with the lengths it had."""
    return with_unit(before_unit(heads, texts)), with_unit(read @ heads.out.T + heads.out_bias)


def _anchor(
    heads: Heads, texts: TextInputs, read: Float32, old: Float32, settings: TuneSettings
) -> dict[str, Float32]:
    """The gradient of what everyday queries lose."""
    text, video = _units(heads, texts, read)
    sharp = settings.anchor_temperature
    slope = _softmax(text[0] @ video[0].T / sharp, 1) - _softmax(old / sharp, 1)
    slope *= settings.anchor / (sharp * len(slope))
    return _back(heads, texts, read, text, video, slope)


def _back(
    heads: Heads,
    texts: TextInputs,
    read: Float32,
    text: tuple[Float32, Float32],
    video: tuple[Float32, Float32],
    slope: Float32,
) -> dict[str, Float32]:
    """From the slope of the cosines `[texts, items]` to those of the heads."""
    of_text = _off_sphere(text, slope @ video[0])
    of_video = _off_sphere(video, slope.T @ text[0])
    words = np.zeros_like(heads.words)
    there = texts.words >= 0
    row, _ = np.nonzero(there)
    np.add.at(words, texts.words[there], of_text[row] * texts.share[there][:, None])
    return {
        "straight": of_text.T @ texts.x,
        "straight_bias": of_text.sum(axis=0),
        "out": of_video.T @ read,
        "out_bias": of_video.sum(axis=0),
        "words": words,
    }


def _off_sphere(unit: tuple[Float32, Float32], slope: Float32) -> Float32:
    """Back through x / ‖x‖: what points along x is lost."""
    rows, lengths = unit
    return np.asarray((slope - rows * (rows * slope).sum(axis=1, keepdims=True)) / lengths, np.float32)


def _softmax(x: Float32, axis: int) -> Float32:
    shifted = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=axis, keepdims=True), np.float32)


def _dropped(
    texts: TextInputs, read: Float32, settings: TuneSettings, rng: np.random.Generator
) -> tuple[TextInputs, Float32]:
    """Some of what is read is hidden, and the rest made larger by as much."""
    x, seen, share = (
        array * (rng.random(array.shape, np.float32) >= rate) / np.float32(1 - rate)
        for array, rate in (
            (texts.x, settings.dropout),
            (read, settings.dropout),
            (texts.share, settings.word_dropout),
        )
    )
    return TextInputs(x, texts.deep, texts.words, share, texts.others), seen


class Adam:
    """Adam (Kingma and Ba 2015), warming up and then down a cosine; words have their own rate."""

    def __init__(self, heads: Heads, settings: TuneSettings) -> None:
        self.settings = settings
        self.first = {name: np.zeros_like(array) for name, array in heads.arrays().items()}
        self.second = {name: np.zeros_like(array) for name, array in heads.arrays().items()}

    def step(self, heads: Heads, slopes: dict[str, Float32], number: int) -> Heads:
        settings, moved = self.settings, {}
        fade = (1 + np.cos(np.pi * number / settings.steps)) / 2
        factor = min(1.0, (number + 1) / settings.warmup) * fade
        for name, array in heads.arrays().items():
            first, second, slope = self.first[name], self.second[name], slopes[name]
            first += (1 - BETAS[0]) * (slope - first)
            second += (1 - BETAS[1]) * (slope * slope - second)
            rate = factor * (settings.word_lr if name == "words" else settings.lr)
            rate *= np.sqrt(1 - BETAS[1] ** (number + 1)) / (1 - BETAS[0] ** (number + 1))
            moved[name] = np.asarray(array - np.float32(rate) * first / (np.sqrt(second) + TINY), np.float32)
        return Heads(**moved)
