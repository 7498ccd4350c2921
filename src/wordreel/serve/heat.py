"""Where in a video some words match: a strip of values over time.

    heat(clip) = (s(clip) − m) / (M − m), cut to [0, 1]

s is the score that ranks a search, m the median over all items of the library and M their best: a video that
has nothing to do with the words stays cold, however it compares with itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.search.scoring import PLAIN, FittedNorm
from wordreel.search.searcher import Searcher

MOST_STEPS = 400
SHORTEST_STEP = 0.5  # seconds
MOMENTS = 5


@dataclass(frozen=True)
class Heat:
    """`scores[i]` is the heat of the second `i · step` and what follows; `moments` are (start, end, heat)."""

    step: float
    duration: float
    scores: tuple[float, ...]
    moments: tuple[tuple[float, float, float], ...]


def heat(searcher: Searcher, content: str, text: str, norm: FittedNorm = PLAIN) -> Heat:
    """The strip of one video for some words."""
    scores = next(searcher.item_scores([text], [norm]))[0].astype(np.float64)
    rows = [row for row in searcher.rows(content) if not searcher.items[row].whole] or searcher.rows(content)
    clips = [searcher.items[row] for row in rows]
    low, high = float(np.median(scores)), float(scores.max())
    values = np.clip((scores[rows] - low) / (high - low), 0, 1) if high > low else np.ones(len(rows))
    duration = max(clip.end for clip in clips)
    step = max(SHORTEST_STEP, duration / MOST_STEPS)
    middles = (np.arange(max(1, int(np.ceil(duration / step - 1e-9)))) + 0.5) * step
    starts = np.array([clip.start for clip in clips])
    order = np.argsort(starts, kind="stable")
    at = order[np.maximum(np.searchsorted(starts[order], middles, side="right") - 1, 0)]
    best = np.argsort(-values, kind="stable")[:MOMENTS]
    return Heat(
        step,
        duration,
        tuple(round(float(value), 4) for value in values[at]),
        tuple((clips[i].start, clips[i].end, round(float(values[i]), 4)) for i in best.tolist()),
    )
