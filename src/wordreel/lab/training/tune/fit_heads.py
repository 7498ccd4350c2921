"""Learning the heads: pairs of a video and one of its captions, told apart from the other pairs of a batch.

    s(q, v) = (w₀ ⟨text, video⟩ + rest) / z        what search ranks by; rest and z are the bridge's rows'
    loss    = −log softmax(s / τ) of the pair, along rows and along columns
              + anchor · KL(before ‖ now) of everyday queries over the batch's videos

The gradient is written out: two products, two projections off the unit sphere. Only words that two or more
of the training videos have are learned; the rest of the table stays zero.
"""

from __future__ import annotations

import numpy as np

from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune.heads import (
    Heads,
    TextInputs,
    normalise,
    text_vectors,
    unnormalised,
    video_vectors,
)
from wordreel.lab.training.tune.tune_data import TuneData
from wordreel.models.reel.own_words import MOST
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
        texts, read = _dropout(data.texts.at(rows), data.read[items], settings, rng)
        gradients = _pairs_gradient(heads, data, texts, read, items, settings)
        if settings.anchor:
            asks = rng.permutation(len(data.everyday))[: settings.anchor_batch]
            old = everyday[asks] @ before[items].T
            anchor = _anchor_gradient(heads, data.everyday.at(asks), data.read[items], old, settings)
            gradients = {name: gradient + anchor[name] for name, gradient in gradients.items()}
        gradients["words"][~learned] = 0
        heads = optimiser.step(heads, gradients, step)
    return heads


def words_learned(data: TuneData, videos: Int64) -> Bool:
    """`[words]`: which stand in captions of two or more of these videos."""
    rows = data.captions_of(videos)
    ids = data.texts.words[rows]
    owner = np.repeat(data.owner[rows], MOST)[ids.ravel() >= 0]
    pairs = np.unique(np.stack([ids.ravel()[ids.ravel() >= 0], owner]), axis=1)
    return np.asarray(np.bincount(pairs[0], minlength=len(data.words)) >= 2)


def _pairs_gradient(
    heads: Heads, data: TuneData, texts: TextInputs, read: Float32, items: Int64, settings: TuneSettings
) -> dict[str, Float32]:
    """The gradient of the pairs' loss."""
    text, video = _normalised(heads, texts, read)
    rest, share = data.rest(texts.others, items)
    scores = (text[0] @ video[0].T * share + rest) / settings.temperature
    gradient = _softmax(scores, 1) + _softmax(scores, 0)
    gradient[np.diag_indices(len(gradient))] -= 2
    gradient *= share / (settings.temperature * len(gradient))
    return _backward(heads, texts, read, text, video, gradient)


def _normalised(heads: Heads, texts: TextInputs, read: Float32) -> tuple[tuple[Float32, Float32], ...]:
    """Both sides at unit length, each with the lengths it had."""
    return normalise(unnormalised(heads, texts)), normalise(read @ heads.out.T + heads.out_bias)


def _anchor_gradient(
    heads: Heads, texts: TextInputs, read: Float32, old: Float32, settings: TuneSettings
) -> dict[str, Float32]:
    """The gradient of the anchor's KL divergence on everyday queries."""
    text, video = _normalised(heads, texts, read)
    sharp = settings.anchor_temperature
    gradient = _softmax(text[0] @ video[0].T / sharp, 1) - _softmax(old / sharp, 1)
    gradient *= settings.anchor / (sharp * len(gradient))
    return _backward(heads, texts, read, text, video, gradient)


def _backward(
    heads: Heads,
    texts: TextInputs,
    read: Float32,
    text: tuple[Float32, Float32],
    video: tuple[Float32, Float32],
    gradient: Float32,
) -> dict[str, Float32]:
    """The gradient of the heads from that of the cosines `[texts, items]`."""
    of_text = _normalise_backward(text, gradient @ video[0])
    of_video = _normalise_backward(video, gradient.T @ text[0])
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


def _normalise_backward(unit: tuple[Float32, Float32], gradient: Float32) -> Float32:
    """Back through x / ‖x‖: the component along x is projected out."""
    rows, lengths = unit
    return np.asarray((gradient - rows * (rows * gradient).sum(axis=1, keepdims=True)) / lengths, np.float32)


def _softmax(x: Float32, axis: int) -> Float32:
    shifted = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=axis, keepdims=True), np.float32)


def _dropout(
    texts: TextInputs, read: Float32, settings: TuneSettings, rng: np.random.Generator
) -> tuple[TextInputs, Float32]:
    """Inverted dropout of what the heads read."""
    x, seen, share = (
        array * (rng.random(array.shape, np.float32) >= dropout) / np.float32(1 - dropout)
        for array, dropout in (
            (texts.x, settings.dropout),
            (read, settings.dropout),
            (texts.share, settings.word_dropout),
        )
    )
    return TextInputs(x, texts.deep, texts.words, share, texts.others), seen


class Adam:
    """Adam (Kingma and Ba 2015), warming up and then down a cosine; words have their own learning rate."""

    def __init__(self, heads: Heads, settings: TuneSettings) -> None:
        self.settings = settings
        self.first = {name: np.zeros_like(array) for name, array in heads.arrays().items()}
        self.second = {name: np.zeros_like(array) for name, array in heads.arrays().items()}

    def step(self, heads: Heads, gradients: dict[str, Float32], number: int) -> Heads:
        settings, moved = self.settings, {}
        fade = (1 + np.cos(np.pi * number / settings.steps)) / 2
        factor = min(1.0, (number + 1) / settings.warmup) * fade
        for name, array in heads.arrays().items():
            first, second, gradient = self.first[name], self.second[name], gradients[name]
            first += (1 - BETAS[0]) * (gradient - first)
            second += (1 - BETAS[1]) * (gradient * gradient - second)
            lr = factor * (settings.word_lr if name == "words" else settings.lr)
            lr *= np.sqrt(1 - BETAS[1] ** (number + 1)) / (1 - BETAS[0] ** (number + 1))
            moved[name] = np.asarray(array - np.float32(lr) * first / (np.sqrt(second) + TINY), np.float32)
        return Heads(**moved)
