"""How well some heads answer captions: by the ranks that a search would give their videos."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordreel.evaluate.ranks import ranks_of
from wordreel.training.tune.heads import Heads, text_vectors, video_vectors
from wordreel.training.tune.tune_data import AT_ONCE, TuneData
from wordreel.types import Float32, Float64, Int64

TOP = 10


def ranks(data: TuneData, captions: Int64, candidates: Sequence[Heads]) -> Float64:
    """`[candidates, captions]` rank of each caption's video; a video is as good as its best item."""
    found = np.zeros((len(candidates), len(captions)))
    seen = [video_vectors(heads, data.read) for heads in candidates]
    for start in range(0, len(captions), AT_ONCE):
        rows = captions[start : start + AT_ONCE]
        texts = data.texts.at(rows)
        rest, share = data.rest(texts.others)
        rest = rest + bonus(data, rows)
        for number, heads in enumerate(candidates):
            items = text_vectors(heads, texts) @ seen[number].T * share + rest
            best = np.maximum.reduceat(items, data.edges, axis=1)
            found[number, start : start + len(rows)] = ranks_of(best, data.owner[rows])
    return found


def bonus(data: TuneData, rows: Int64) -> Float32:
    """`[rows, items]`: what words that were said or shown add."""
    caption, item, value = data.bonus
    made = np.zeros((len(rows), len(data.video)), np.float32)
    place = np.full(len(data.owner), -1, np.int64)
    place[rows] = np.arange(len(rows))
    here = place[caption] >= 0
    made[place[caption[here]], item[here]] = value[here]
    return made


def everyday_best(data: TuneData, heads: Heads) -> Int64:
    """`[queries, ≤ 10]`: the best videos of everyday queries."""
    seen = video_vectors(heads, data.read)
    top = min(TOP, data.videos)
    made = []
    for start in range(0, len(data.everyday), AT_ONCE):
        texts = data.everyday.at(np.arange(start, min(start + AT_ONCE, len(data.everyday))))
        rest, share = data.rest(texts.others)
        best = np.maximum.reduceat(text_vectors(heads, texts) @ seen.T * share + rest, data.edges, axis=1)
        made.append(np.argpartition(-best, top - 1, axis=1)[:, :top])
    return np.concatenate(made)


def kept_share(before: Int64, after: Int64) -> float:
    """How many of the best videos are still among the best, on average.

    >>> kept_share(np.array([[0, 1], [2, 3]]), np.array([[1, 0], [3, 4]]))
    0.75
    """
    return float((before[:, :, None] == after[:, None, :]).any(axis=2).mean())


def spread(found: Float64) -> Float64:
    """What the strength is chosen by: the mean of log rank, which a few hopeless captions cannot decide."""
    return np.asarray(np.log(found).mean(axis=-1))
