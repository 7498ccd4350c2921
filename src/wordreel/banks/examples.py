"""Example queries: those of a query bank that find something in this library."""

from __future__ import annotations

import numpy as np

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.hubness.confidence import CROWD
from wordreel.search.scoring import RivalScores
from wordreel.types import Int64

LEAST = 0.1  # how sure a query's best answer must be
AT_ONCE = 64  # queries


def example_queries(embedded: EmbeddedBank, count: int = 6) -> list[str]:
    """Return the queries of a bank whose best answers are surest, best first, at most one for each video.

    Cost O(bank · sample): a large library is judged by its sample of videos. Spoken and on-screen words give
    no bonus here.
    """
    confidence = embedded.confidence()
    if confidence is None:
        return []
    snapshot, queries = embedded.searcher.snapshot, embedded.current()
    sample, found = snapshot.sample, []
    for start in range(0, len(queries.ids), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        for number, scores in enumerate(sample.scores(queries.vectors[some], queries.weights[some]), start):
            best = sample.best(scores)
            known = scores[best].astype(np.float32)
            rivals = RivalScores(known, sample.videos, -np.sort(-known)[:CROWD])
            first = int(known.argmax())
            row: Int64 = sample.rows[best[first : first + 1]]
            found.append((float(confidence(known[first : first + 1], row, rivals)[0]), number, int(row[0])))
    chosen: dict[int, str] = {}
    for sure, number, at in sorted(found, key=lambda one: (-one[0], one[1])):
        if sure < LEAST or len(chosen) == count:
            break
        chosen.setdefault(int(snapshot.columns.video[at]), embedded.bank.texts[number])
    return list(chosen.values())
