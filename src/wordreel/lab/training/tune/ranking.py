"""How well some heads answer captions: by the ranks that a search would give their videos."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordreel.lab.training.tune.heads import Heads, text_vectors, video_vectors
from wordreel.lab.training.tune.tune_data import AT_ONCE, TuneData
from wordreel.retrieval.ranks import ranks_of
from wordreel.types import Float32, Float64, Int64

TOP = 10


def ranks(data: TuneData, captions: Int64, candidates: Sequence[Heads]) -> Float64:
    """`[candidates, captions]` rank of each caption's video; a video is as good as its best item."""
    result = np.zeros((len(candidates), len(captions)))
    seen = [video_vectors(heads, data.read) for heads in candidates]
    for start in range(0, len(captions), AT_ONCE):
        rows = captions[start : start + AT_ONCE]
        texts = data.texts.at(rows)
        rest, share = data.rest(texts.others)
        rest = rest + bonus(data, rows)
        for number, heads in enumerate(candidates):
            items = text_vectors(heads, texts) @ seen[number].T * share + rest
            best = np.maximum.reduceat(items, data.edges, axis=1)
            result[number, start : start + len(rows)] = ranks_of(best, data.owner[rows])
    return result


def bonus(data: TuneData, rows: Int64) -> Float32:
    """`[rows, items]`: the bonus of spoken words and on-screen text."""
    caption, item, value = data.bonus
    result = np.zeros((len(rows), len(data.video)), np.float32)
    position = np.full(len(data.owner), -1, np.int64)
    position[rows] = np.arange(len(rows))
    here = position[caption] >= 0
    result[position[caption[here]], item[here]] = value[here]
    return result


def everyday_best(data: TuneData, heads: Heads) -> Int64:
    """`[queries, ≤ 10]`: the best videos of everyday queries."""
    seen = video_vectors(heads, data.read)
    top = min(TOP, data.videos)
    best_videos = []
    for start in range(0, len(data.everyday), AT_ONCE):
        texts = data.everyday.at(np.arange(start, min(start + AT_ONCE, len(data.everyday))))
        rest, share = data.rest(texts.others)
        best = np.maximum.reduceat(text_vectors(heads, texts) @ seen.T * share + rest, data.edges, axis=1)
        best_videos.append(np.argpartition(-best, top - 1, axis=1)[:, :top])
    return np.concatenate(best_videos)


def overlap(before: Int64, after: Int64) -> float:
    """How many of the best videos are still among the best, on average.

    >>> overlap(np.array([[0, 1], [2, 3]]), np.array([[1, 0], [3, 4]]))
    0.75
    """
    return float((before[:, :, None] == after[:, None, :]).any(axis=2).mean())


def mean_log_rank(values: Float64) -> Float64:
    """The mean of log rank, by which the strength is chosen: a few hopeless captions do not dominate it."""
    return np.asarray(np.log(values).mean(axis=-1))
