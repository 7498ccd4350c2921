"""Words to hits: embedding, index, lexical bonus, normalisation.

A video is as good as its best item; the moment displayed is its best clip. Spoken and on-screen words add
a bonus (`lexical`) to the items they fall into. Only those items can gain, so the best items are among the
index's best and them, and the result is exact.

A `FittedNorm` corrects the ranking by a query bank: inside the index where the method allows it, otherwise by
scoring the plain best `CANDIDATES` again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wordreel.index.exact import BLOCK
from wordreel.library.records import StoredClip
from wordreel.search.explain import explain_item
from wordreel.search.hits import Hit, Results, hit_of
from wordreel.search.query import Query, needs_confidence
from wordreel.search.scoring import PLAIN, FittedNorm, Scoring
from wordreel.types import Bool, Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.searcher import EncodedText, Searcher

CANDIDATES = 1_000  # items that a rescoring method sees


@dataclass(frozen=True)
class _Scored:
    row: int
    score: float


def search_text(
    searcher: Searcher, encoded: Sequence[EncodedText], query: Query, scoring: Scoring
) -> Results[Hit]:
    """The best videos for some words, or the best moments of any video. Skipped hits are not explained."""
    if query.min_confidence > 0 and scoring.confidence is None:
        raise needs_confidence()
    snapshot = searcher.snapshot
    paths = query.filters.paths(snapshot.files, snapshot.facts)
    (text,) = encoded
    hits: tuple[Hit, ...] = ()
    if paths:
        hits = tuple(_hits(_TextSearch(searcher, text, scoring.norm), query, scoring, paths))
    weights = tuple(text.embedding.weights.tolist())
    return Results(hits, scoring.norm.label, scoring.note, len(paths), weights)


def _hits(search: _TextSearch, query: Query, scoring: Scoring, paths: Mapping[str, str]) -> list[Hit]:
    snapshot, text = search.searcher.snapshot, search.text
    allowed = np.full(len(snapshot), len(paths) == len(snapshot.rows_by_content))
    if not allowed.all():
        for content in paths:
            allowed[snapshot.rows(content)] = True
    confidence: Float32 | None = None
    known: Float32 | None = None
    if scoring.confidence is not None and len(snapshot):
        every = snapshot.index.scores(search.vectors, search.weights, slice(None))
        plain = every[0].copy()
        plain[list(text.lexical.bonus)] += np.array(list(text.lexical.bonus.values()), np.float32)
        confidence = scoring.confidence(plain, snapshot.best_rows(plain[None])[0])
        allowed &= confidence >= query.min_confidence
        # A product over more than one block may round a few items differently from the blocks that rank.
        known = every if len(snapshot) <= BLOCK else None
    ranked, corrected = search.rank(known, allowed, query.offset + query.limit, query.moments)
    label = scoring.norm.label if corrected else PLAIN.label
    return [
        search.hit(
            scored,
            paths,
            rank=rank,
            confidence=None if confidence is None else float(confidence[scored.row]),
            norm=label,
        )
        for rank, scored in enumerate(ranked[query.offset :], start=query.offset + 1)
    ]


@dataclass(frozen=True, eq=False)
class _TextSearch:
    searcher: Searcher
    text: EncodedText
    norm: FittedNorm

    @property
    def vectors(self) -> Float32:
        return self.text.embedding.vectors[None]

    @property
    def weights(self) -> Float32:
        return self.text.embedding.weights[None]

    def plain(self, rows: Int64) -> Float32:
        """Similarity and bonus of some items, without any correction."""
        bonus = self.text.lexical.bonus
        extra = np.array([bonus.get(row, 0.0) for row in rows.tolist()], np.float32)
        plain = self.searcher.snapshot.index.scores(self.vectors, self.weights, rows)[0] + extra
        return np.asarray(plain, np.float32)

    def rank(
        self, known: Float32 | None, allowed: Bool, limit: int, moments: bool
    ) -> tuple[list[_Scored], bool]:
        """The best item of each video (or the best moments), searching deeper until there are enough, and
        whether the norm held for this query. `known [1, items]` are the similarities, if computed already."""
        norm, snapshot = self.norm, self.searcher.snapshot
        extra = np.array([row for row in self.text.lexical.bonus if allowed[row]], np.int64)
        depth = 4 * limit if norm.rescore is None else max(CANDIDATES, 4 * limit)
        while True:
            k = min(depth, len(snapshot))
            best = snapshot.index.search(self.vectors, self.weights, k, allowed, norm.correction, known)
            rows = best.rows[0][best.rows[0] >= 0]
            scores = dict(zip(rows.tolist(), best.scores[0].tolist(), strict=False))
            if len(extra):
                gained = self.plain(extra)
                if norm.correction is not None and best.corrected[0]:
                    gained = gained - norm.correction.bias[extra]
                scores |= dict(zip(extra.tolist(), gained.tolist(), strict=True))
            if norm.rescore is not None and scores:
                some = np.array(list(scores), np.int64)
                plain = np.array(list(scores.values()), np.float32)
                scores = dict(zip(some.tolist(), norm.rescore(plain[None], some)[0].tolist(), strict=True))
            everything = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
            chosen = self._moments(everything) if moments else self._videos(everything)
            if len(chosen) >= limit or len(rows) < depth:
                return chosen[:limit], norm.rescore is not None or bool(best.corrected[0])
            depth *= 4

    def _videos(self, ordered: list[tuple[int, float]]) -> list[_Scored]:
        best: dict[str, _Scored] = {}
        for row, score in ordered:
            best.setdefault(self.searcher.snapshot.items[row].content, _Scored(row, score))
        return list(best.values())

    def _moments(self, ordered: list[tuple[int, float]]) -> list[_Scored]:
        snapshot = self.searcher.snapshot
        return [
            _Scored(row, score)
            for row, score in ordered
            if not snapshot.items[row].whole or len(snapshot.rows(snapshot.items[row].content)) == 1
        ]

    def hit(self, scored: _Scored, paths: Mapping[str, str], **more: Any) -> Hit:
        item = self.searcher.snapshot.items[scored.row]
        moment = self._moment(item)
        reasons = explain_item(self.searcher, scored.row, self.text)
        path = paths[item.content]
        return hit_of(Hit, self.searcher.store, item, moment, path, score=scored.score, why=reasons, **more)

    def _moment(self, item: StoredClip) -> StoredClip:
        """What to display of an item: itself, and of a whole video its best clip."""
        snapshot = self.searcher.snapshot
        clips = [row for row in snapshot.rows(item.content) if not snapshot.items[row].whole]
        if not item.whole or not clips:
            return item
        rows = np.array(clips, np.int64)
        total = self.plain(rows)
        if self.norm.correction is not None:
            total = total - self.norm.correction.bias[rows]
        return snapshot.items[clips[int(np.argmax(total))]]
