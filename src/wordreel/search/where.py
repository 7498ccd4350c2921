"""Where in a video some words match: a score for each step of time.

    score(clip) = (s(clip) − m) / (M − m), clipped to [0, 1]

s is the score that ranks a search, m its median over all items of the library and M its maximum: a video that
has nothing to do with the words stays near 0 everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordreel.search.hits import MatchTimeline
from wordreel.search.scoring import PLAIN, FittedNorm

if TYPE_CHECKING:
    from wordreel.search.searcher import Searcher

MOST_STEPS = 400
SHORTEST_STEP = 0.5  # seconds
MOMENTS = 5


def match_timeline(searcher: Searcher, content: str, text: str, norm: FittedNorm = PLAIN) -> MatchTimeline:
    """How well some words match one video over time."""
    snapshot = searcher.snapshot
    scores = next(searcher.item_scores([text], [norm]))[0].astype(np.float64)
    rows = snapshot.clip_rows(content)
    clips = [snapshot.items[row] for row in rows]
    low, high = float(np.median(scores)), float(scores.max())
    values = np.clip((scores[rows] - low) / (high - low), 0, 1) if high > low else np.ones(len(rows))
    duration = max(clip.end for clip in clips)
    step = max(SHORTEST_STEP, duration / MOST_STEPS)
    middles = (np.arange(max(1, int(np.ceil(duration / step - 1e-9)))) + 0.5) * step
    starts = np.array([clip.start for clip in clips])
    order = np.argsort(starts, kind="stable")
    at = order[np.maximum(np.searchsorted(starts[order], middles, side="right") - 1, 0)]
    best = np.argsort(-values, kind="stable")[:MOMENTS]
    return MatchTimeline(
        step,
        duration,
        tuple(round(float(value), 4) for value in values[at]),
        tuple((clips[i].start, clips[i].end, round(float(values[i]), 4)) for i in best.tolist()),
        norm.label,
    )
