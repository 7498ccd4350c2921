"""How often each video is among the best of a bank's queries, plainly and with a normalisation.

The best are ten; of fewer than a hundred videos a tenth, or everything would be found by everybody.

The queries that made the normalisation are those that are counted, so "after" is what it does to them; how it
does on queries that it has not seen, `bank check` measures. Spoken and on-screen words give no bonus here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.hubness.measures import k_occurrence, measure_hubness, occurrence_edges
from wordreel.index.exact import ExactIndex
from wordreel.index.topk import topk_ids
from wordreel.search.scoring import PLAIN, FittedNorm
from wordreel.types import Int64

K = 10  # videos that count as found, at most
BATCH = 64  # queries at once
HUBS = 24


@dataclass(frozen=True)
class HubCounts:
    """`before` and `after` `[videos]`, in the order of `contents`."""

    contents: tuple[str, ...]
    before: Int64
    after: Int64
    measures: tuple[dict[str, Any], dict[str, Any]]
    edges: tuple[int, ...]
    histograms: tuple[tuple[int, ...], tuple[int, ...]]

    def hubs(self) -> list[int]:
        """The videos that were found most often before."""
        return [int(video) for video in np.argsort(-self.before, kind="stable")[:HUBS]]


def best_of(videos: int) -> int:
    """k: how many videos count as found.

    >>> best_of(1936), best_of(52), best_of(4)
    (10, 5, 1)
    """
    return min(K, max(1, videos // 10))


def count_occurrences(work: EmbeddedBank, norm: FittedNorm) -> HubCounts:
    """Count over all queries of the bank; cost O(bank · items)."""
    contents = tuple(work.searcher.snapshot.contents())
    best = [_best(work, PLAIN), _best(work, norm)]
    k = best[0].shape[1]
    counts = [np.asarray(k_occurrence(ranking, k, len(contents)), np.int64) for ranking in best]
    edges = occurrence_edges(max(int(count.max(initial=0)) for count in counts))
    drawn = [np.histogram(count, np.append(edges[:-1], np.inf))[0].tolist() for count in counts]
    measured = [asdict(measure_hubness(ranking, k, len(contents))) for ranking in best]
    return HubCounts(
        contents,
        counts[0],
        counts[1],
        (measured[0], measured[1]),
        tuple(int(edge) for edge in edges[:-1]),
        (tuple(drawn[0]), tuple(drawn[1])),
    )


def _best(work: EmbeddedBank, norm: FittedNorm) -> Int64:
    """`[queries, k]`: the numbers of each query's best videos."""
    searcher, queries = work.searcher, work.current()
    index = ExactIndex(searcher.snapshot.gallery.vectors, searcher.snapshot.gallery.available)
    best = []
    for start in range(0, len(queries.ids), BATCH):
        some = slice(start, start + BATCH)
        plain = index.scores(queries.vectors[some], queries.weights[some], slice(None))
        scores: Any = plain
        if norm.rescore is not None:
            scores = norm.rescore(plain, np.arange(plain.shape[1]))
        elif norm.correction is not None:
            bias, gate = norm.correction.bias, norm.correction.active
            live = np.where(searcher.snapshot.live, plain, -np.inf)
            opened = np.ones(len(plain), bool) if gate is None else gate[live.argmax(axis=1)]
            scores = plain - np.where(opened[:, None], bias, np.float32(0))
        videos = searcher.snapshot.best_items(scores)
        best.append(topk_ids(videos, best_of(videos.shape[1])))
    return np.concatenate(best)
