"""How often each video is among the best of a bank's queries, plainly and with a normalisation.

The best are ten; of fewer than a hundred videos a tenth, or everything would be found by everybody.

The queries that made the normalisation are those that are counted, so "after" is what it does to them; how it
does on queries that it has not seen, `bank check` measures. Spoken and on-screen words give no bonus here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.hubness.measures import k_occurrence, measure_hubness, occurrence_edges
from wordreel.index.topk import topk_ids
from wordreel.search.scoring import PLAIN, FittedNorm
from wordreel.search.searcher import EncodedText
from wordreel.search.words.lexical import lexical_matches
from wordreel.types import Int64, QueryEmbedding

K = 10  # videos that count as found, at most
BATCH = 64  # queries at once
HUBS = 24


@dataclass(frozen=True)
class HubCounts:
    """`before` and `after` `[videos]`, in the order of `contents`; `measures` and histograms of the two."""

    contents: tuple[str, ...]
    before: Int64
    after: Int64
    edges: list[int]
    measures: list[dict[str, Any]]

    def hubs(self) -> list[int]:
        """Return the videos that were found most often before."""
        return [int(video) for video in np.argsort(-self.before, kind="stable")[:HUBS]]


def best_of(videos: int) -> int:
    """Return k: how many videos count as found.

    >>> best_of(1936), best_of(52), best_of(4)
    (10, 5, 1)
    """
    return min(K, max(1, videos // 10))


def count_occurrences(work: EmbeddedBank, norm: FittedNorm) -> HubCounts:
    """Count over all queries of the bank; cost O(bank · items)."""
    contents = tuple(work.searcher.snapshot.contents())
    k = best_of(len(contents))
    rankings = _best(work, [PLAIN, norm], k)
    before, after = (np.asarray(k_occurrence(ranking, k, len(contents)), np.int64) for ranking in rankings)
    edges = occurrence_edges(max(int(count.max(initial=0)) for count in (before, after)))
    measures = [
        {
            **asdict(measure_hubness(ranking, k, len(contents))),
            "histogram": np.histogram(counts, np.append(edges[:-1], np.inf))[0].tolist(),
        }
        for ranking, counts in zip(rankings, (before, after), strict=True)
    ]
    return HubCounts(contents, before, after, [int(edge) for edge in edges[:-1]], measures)


def _best(work: EmbeddedBank, norms: Sequence[FittedNorm], k: int) -> list[Int64]:
    """Return `[queries, k]` under each norm: the numbers of each query's best videos."""
    searcher, queries = work.searcher, work.current()
    no_words = lexical_matches(searcher.snapshot, "")
    encoded = [
        EncodedText("", QueryEmbedding(vectors, weights), no_words)
        for vectors, weights in zip(queries.vectors, queries.weights, strict=True)
    ]
    best: list[list[Int64]] = [[] for _ in norms]
    for start in range(0, len(encoded), BATCH):
        scores = searcher.item_scores(encoded[start : start + BATCH], norms)
        for found, items in zip(best, scores, strict=True):
            found.append(topk_ids(searcher.snapshot.best_items(items), k))
    return [np.concatenate(found) for found in best]
