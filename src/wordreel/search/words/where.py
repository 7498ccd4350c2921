"""Where in a video some words match: how sure each step of time is.

With a query bank, a clip is as sure as a search would say, and the best clip, which a search displays, as
sure as the whole video: a video that has nothing to do with the words is cold everywhere. Clips are ordered
by the score that ranks a search, and none is surer than one above it. Without a bank,

    score(clip) = (s(clip) − m) / (M − m), clipped to [0, 1]

s is the score that ranks a search, M its maximum over all items of the library and m its median over a sample
of them (`sample`, all items of a small library).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordreel.search.hits import MatchTimeline
from wordreel.search.scoring import Scoring
from wordreel.search.text_search import TextSearch, never_rising
from wordreel.types import Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.searcher import Searcher

MOST_STEPS = 400
SHORTEST_STEP = 0.5  # seconds
MOMENTS = 5
PLAIN_SCORING = Scoring()


def match_timeline(
    searcher: Searcher, content: str, text: str, scoring: Scoring = PLAIN_SCORING
) -> MatchTimeline:
    """Return how well some words match one video over time."""
    snapshot = searcher.snapshot
    search = TextSearch(searcher, searcher.encode_texts([text])[0], scoring)
    rows = snapshot.clip_rows(content)
    clips = [snapshot.items[row] for row in rows]
    scores = search.scores(rows)
    order = np.argsort(-scores, kind="stable")
    sure = _confidences(search, content, rows[order])
    if sure is None:
        worded = search.text.lexical.items
        best = np.append(search.best_item.rows[0], worded[snapshot.live[worded]])
        sampled = search.scores(snapshot.sample.rows)
        low = float(np.median(sampled))
        high = max(float(values.max()) for values in (search.scores(best), sampled, scores))
        values = np.clip((scores - low) / (high - low), 0, 1) if high > low else np.ones(len(rows))
    else:
        values = np.empty(len(rows))
        values[order] = sure
    duration = max(clip.end for clip in clips)
    step = max(SHORTEST_STEP, duration / MOST_STEPS)
    middles = (np.arange(max(1, int(np.ceil(duration / step - 1e-9)))) + 0.5) * step
    starts = np.array([clip.start for clip in clips])
    in_time = np.argsort(starts, kind="stable")
    at = in_time[np.maximum(np.searchsorted(starts[in_time], middles, side="right") - 1, 0)]
    return MatchTimeline(
        step,
        duration,
        tuple(round(float(value), 4) for value in values[at]),
        tuple((clips[i].start, clips[i].end, round(float(values[i]), 4)) for i in order[:MOMENTS].tolist()),
        scoring.norm.label,
        calibrated=sure is not None,
    )


def _confidences(search: TextSearch, content: str, ranked: Int64) -> Float32 | None:
    """Of a video's clips, best first; None without a query bank that can tell."""
    sure = search.confidences(ranked)
    every = search.confidences(search.searcher.snapshot.rows(content))
    if sure is None or every is None:
        return None
    return never_rising(np.append(every.max(), sure[1:]))
