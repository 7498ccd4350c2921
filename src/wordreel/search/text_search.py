"""Words to hits: embedding, index, lexical bonus, normalisation.

A video is as good as its best item; the moment displayed is its best clip. Spoken and on-screen words add
a bonus (`lexical`) to the items they fall into. Only those items can gain, so the best items are among the
index's best and them, and the result is as exact as the index. Of items with a bonus, only those are scored
that could reach the results by what the index says of all others (`index.base.Rest`).

A `FittedNorm` corrects the ranking by a query bank: inside the index where the method allows it, otherwise by
scoring the plain best `CANDIDATES` again. Confidences compare a hit with a sample of the videos (`sample`).

A moment in which all words are said or shown in order comes before every other one that is less than SURE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from wordreel.catalogue.records import StoredClip
from wordreel.index.base import Best, Correction, IndexResult
from wordreel.index.exact import ExactIndex, search_scores
from wordreel.search.explain import explain_items
from wordreel.search.hits import Hit, Results, hit_of
from wordreel.search.query import Query, needs_confidence
from wordreel.search.scoring import PLAIN, RivalScores, Scoring
from wordreel.search.segments import Scores, first_places, segment_argmax, take_segments
from wordreel.search.words.passing_videos import PassingVideos, allowed_items
from wordreel.types import Bool, Float32, Float64, Int64

if TYPE_CHECKING:
    from wordreel.search.searcher import EncodedText, Searcher

ROUNDING = 1e-5  # that a float32 score may be off by
DECIMALS = 6  # in which two scores must differ to be ranked by them
ALL_AT_ONCE = 16_384  # items that are compared once, for ranking, confidences and moments alike
AT_ONCE = 2_048  # items with a bonus that are scored together
SURE = 0.5  # confidence of what is better than a guess
CANDIDATES = 1_000  # items that a rescoring method sees, or that are searched for confident ones at first


@dataclass(frozen=True)
class _Scored:
    """An item and the score that ranks it, `lift` of which puts a full match of the words above guesses."""

    row: int
    score: float
    lift: float = 0.0


def search_text(
    searcher: Searcher, encoded: Sequence[EncodedText], query: Query, scoring: Scoring
) -> Results[Hit]:
    """Return the best videos for some words, or the best moments of any video.

    Skipped hits are not explained.
    """
    if query.min_confidence > 0 and scoring.confidence is None:
        raise needs_confidence()
    passing = searcher.snapshot.passing(query.filters)
    text, *without = (TextSearch(searcher, one, scoring) for one in encoded)
    hits: tuple[Hit, ...] = ()
    if passing.count:
        hits = tuple(_hits(text, without, query, passing))
    weights = tuple(text.text.embedding.weights.tolist())
    notices = text.text.understanding.notices
    return Results(hits, scoring.norm.label, scoring.note, notices, passing.count, weights)


def _hits(
    search: TextSearch, without: Sequence[TextSearch], query: Query, passing: PassingVideos
) -> list[Hit]:
    ranked, corrected = search.rank(allowed_items(search, query.phrases, without, passing), query)
    displayed, snapshot = ranked[query.offset :], search.searcher.snapshot
    contents = [snapshot.items[scored.row].content for scored in displayed]
    records = passing.records(contents)
    label = search.scoring.norm.label if corrected else PLAIN.label
    sure = search.confidences(np.array([scored.row for scored in ranked], np.int64))
    if sure is not None:
        lifted = np.array([scored.lift > 0 for scored in ranked], bool)
        sure = never_rising(np.where(lifted, np.maximum.accumulate(sure[::-1])[::-1], sure))
    confidences = None if sure is None else sure[query.offset :].tolist()
    there = [number for number, content in enumerate(contents) if content in records]  # not removed since
    rows = [displayed[number].row for number in there]
    lifts = [displayed[number].lift for number in there]
    moments = search.moments(rows)
    reasons = explain_items(search.searcher, rows, moments, search.text, lifts)
    return [
        hit_of(
            Hit,
            records[contents[number]],
            moment,
            rank=query.offset + place,
            score=displayed[number].score,
            why=why,
            confidence=None if confidences is None else confidences[number],
            norm=label,
        )
        for place, (number, why, moment) in enumerate(zip(there, reasons, moments, strict=True), start=1)
    ]


def never_rising(confidences: Float32) -> Float32:
    """Make confidences non-increasing in the order of a ranking.

    A hit is there because nothing below it fits better, so what is sure of a lower one is not more than this.

    >>> never_rising(np.array([0.5, 0.2, 0.4], np.float32)).round(1).tolist()
    [0.5, 0.20000000298023224, 0.20000000298023224]
    """
    return np.minimum.accumulate(confidences)


@dataclass(frozen=True, eq=False)
class TextSearch:
    """One text under one scoring."""

    searcher: Searcher
    text: EncodedText
    scoring: Scoring
    _plain_best: dict[int, Best] = field(default_factory=dict, repr=False)
    """The plain best items of all, by how many were asked for, that ranking has found."""

    @property
    def vectors(self) -> Float32:
        """`[1, experts, dim]`."""
        return self.text.embedding.vectors[None]

    @property
    def weights(self) -> Float32:
        """Return the weights of the query's rows."""
        return self.text.embedding.weights[None]

    @cached_property
    def similarities(self) -> Float32 | None:
        """`[1, items]` of all items, where the index would compare all of them anyway and they are few."""
        index = self.searcher.snapshot.index
        if type(index) is not ExactIndex or len(index) > ALL_AT_ONCE:
            return None
        return index.scores(self.vectors, self.weights, slice(None))

    def search(self, k: int, allowed: Bool | None, correction: Correction | None) -> IndexResult:
        """Return the `k` best items as the index finds them, from `similarities` if there are any."""
        if self.similarities is None:
            index = self.searcher.snapshot.index
            return index.search(self.vectors, self.weights, k, allowed, correction)
        return search_scores(self.similarities, k, allowed, correction)

    def plain(self, rows: Int64) -> Float32:
        """Return similarity and bonus of some items, without any correction."""
        if self.similarities is None:
            similar = self.searcher.snapshot.index.scores(self.vectors, self.weights, rows)[0]
        else:
            similar = self.similarities[0, rows]
        return np.asarray(similar + self.text.lexical.of(rows), np.float32)

    @cached_property
    def best_item(self) -> IndexResult:
        """The best item of all, without regard to filters and words."""
        snapshot = self.searcher.snapshot
        live = snapshot.live if len(snapshot.columns.dead) else None
        return snapshot.index.search(self.vectors, self.weights, 1, live, self.scoring.norm.correction)

    @cached_property
    def bias(self) -> Float32 | None:
        """`[rows]`: what the norm subtracts for this text, if it does."""
        correction = self.scoring.norm.correction
        return correction.bias if correction is not None and self.best_item.corrected[0] else None

    def scores(self, rows: Int64) -> Float64:
        """Return the scores that rank a search, of some items."""
        plain, rescore = self.plain(rows), self.scoring.norm.rescore
        if rescore is not None:
            return np.asarray(rescore(plain[None], rows)[0])
        return np.asarray(plain if self.bias is None else plain - self.bias[rows], np.float64)

    @cached_property
    def rivals(self) -> RivalScores:
        """The best items of the sampled videos, and the scores of the best videos of the library.

        Where the sample is not the whole library, finding those costs one more plain search, unless ranking
        made it already.
        """
        from wordreel.hubness.confidence import CROWD

        sample = self.searcher.snapshot.sample
        if self.similarities is None:
            scores = sample.scores(self.vectors, self.weights)[0] + self.text.lexical.of(sample.rows)
        else:
            scores = self.plain(sample.rows)
        best = sample.best(scores)
        known = scores[best].astype(np.float32)
        top = known if len(best) == sample.videos else self._best_videos()
        return RivalScores(known, sample.videos, -np.sort(-top)[:CROWD])

    def _best_videos(self) -> Float32:
        """Return the plain scores of the library's best videos, without regard to filters."""
        from wordreel.hubness.confidence import CROWD

        snapshot = self.searcher.snapshot
        live = snapshot.live if len(snapshot.columns.dead) else None
        video, depth = snapshot.columns.video, 4 * CROWD
        while True:
            k = min(depth, len(snapshot.columns))
            found = self._plain_best.get(k)
            if found is None:
                found = self.search(k, live, None)
            there = found.rows[0][found.rows[0] >= 0]
            if len(there) < depth or len(np.unique(video[there])) >= CROWD:
                break
            depth *= 4
        rows, scores = self._joined(found, None, None, CROWD)
        videos, of = np.unique(video[rows], return_inverse=True)
        best = np.full(len(videos), -np.inf, np.float32)
        np.maximum.at(best, of, scores)
        return best

    def _joined(
        self,
        found: Best,
        allowed: Bool | None,
        bias: Float32 | None,
        wanted: int | None,
        moments: bool = False,
    ) -> tuple[Int64, Float32]:
        """Return the found items and those with a bonus, each once, with their scores.

        With `wanted`, only those that may be among so many best videos (or moments).
        """
        there = found.rows[0] >= 0
        rows, scores = found.rows[0][there], found.scores[0][there]
        items, bonus = self.text.lexical.items, self.text.lexical.values
        if not len(items):
            return rows, scores
        scores = scores + self.text.lexical.of(rows)
        other = ~self._among(items, rows)
        if allowed is not None:
            other &= allowed[items]
        rest = found.rest(0)
        seen = self._among(items, rest.rows)
        left = np.flatnonzero(other)
        left = left[np.argsort(-bonus[left], kind="stable")]
        while len(left):  # the largest bonus first: what it lifts makes others needless
            least = -np.inf if wanted is None else self._least(rows, scores, wanted, moments)
            left = left[seen[left] | (bonus[left] + (rest.most + ROUNDING) >= least)]
            some, left = left[:AT_ONCE], left[AT_ONCE:]
            gained = self._plain_words(some)
            if bias is not None:
                gained = gained - bias[items[some]]
            scored = gained > -np.inf
            rows = np.concatenate([rows, items[some[scored]]])
            scores = np.concatenate([scores, gained[scored]])
        return rows, scores

    def _least(self, rows: Int64, scores: Float32, wanted: int, moments: bool) -> float:
        """Return the score of the last of the `wanted` best videos (or moments); −inf if there are fewer."""
        order = np.lexsort((rows, -scores))
        chosen = self.searcher.snapshot.moment_places(rows[order]) if moments else self._videos(rows[order])
        return float(scores[order[chosen[wanted - 1]]]) if len(chosen) >= wanted else -np.inf

    def _plain_words(self, at: Int64) -> Float32:
        """Similarity and bonus of items that have one, by their place among these, computed once."""
        new = at[np.isnan(self._word_scores[at])]
        self._word_scores[new] = self.plain(self.text.lexical.items[new])
        return self._word_scores[at]

    @cached_property
    def _word_scores(self) -> Float32:
        return np.full(len(self.text.lexical.items), np.nan, np.float32)

    def _among(self, some: Int64, rows: Int64) -> Bool:
        """Which of some items are among others; many of both are compared faster so than sorted."""
        there = np.zeros(len(self.searcher.snapshot.columns), bool)
        there[rows] = True
        return there[some]

    def confidences(self, rows: Int64) -> Float32 | None:
        """Return how sure each of these items is by itself.

        None without a query bank that can tell.

        Of a query that the model does not understand, only its words can make anything sure.
        """
        if self.scoring.confidence is None:
            return None
        confidences = self.scoring.confidence(self.plain(rows), rows, self.rivals)
        if self.text.understanding.any:
            return confidences
        worded = (self.text.lexical.of(rows) > 0) | np.isin(rows, self.literal)
        return np.where(worded, confidences, np.float32(0))

    @cached_property
    def literal(self) -> Int64:
        """The moments in which all words are said or shown in order."""
        items = self.text.lexical.literal.items
        return items[self.searcher.snapshot.moment_places(items)]

    def rank(self, allowed: Bool | None, query: Query) -> tuple[list[_Scored], bool]:
        """Return the best item of each video (or the best moments), and whether the norm held.

        The search goes deeper until there are enough.

        With a minimum confidence, the search ends where three quarters of what it saw are too uncertain.
        """
        norm, snapshot, limit = self.scoring.norm, self.searcher.snapshot, query.offset + query.limit
        every = query.filters.conditions.empty and not query.phrases and not query.without
        many = norm.rescore is not None or query.min_confidence > 0
        depth = max(CANDIDATES, 4 * limit) if many else 4 * limit
        while True:
            k = min(depth, len(snapshot.columns))
            best = self.search(k, allowed, norm.correction)
            if best.plain is not None and every:
                self._plain_best[k] = best.plain
            bias = None if norm.correction is None or not best.corrected[0] else norm.correction.bias
            found = int((best.rows[0] >= 0).sum())
            rows, scores = self._joined(best, allowed, bias, None if many else limit, query.moments)
            rows, scores = self._with_literal(rows, scores, allowed, bias)
            if norm.rescore is not None and len(rows):
                scores = norm.rescore(scores[None], rows)[0]
            own, scores = scores, self._lifted(rows, scores)
            # Scores that differ by rounding are equal: which is the larger depends on the processor.
            near, near_own = scores.round(DECIMALS), own.round(DECIMALS)
            order = np.lexsort((rows, -near_own, ~self._among(rows, self.literal), -near))
            rows, lifts = rows[order], (scores - own)[order]
            scores = np.minimum.accumulate(scores[order])
            sure = self._confident(rows, query.min_confidence)
            chosen = snapshot.moment_places(rows[sure]) if query.moments else self._videos(rows[sure])
            last = slice(-1, None) if query.min_confidence <= 0 else slice(len(rows) // 4, None)
            if len(chosen) >= limit or found < depth or not sure[last].any():
                picked = np.flatnonzero(sure)[chosen[:limit]]
                found_items = zip(*(some[picked].tolist() for some in (rows, scores, lifts)), strict=True)
                ranked = [_Scored(*item) for item in found_items]
                return ranked, norm.rescore is not None or bool(best.corrected[0])
            depth *= 4

    def _with_literal(
        self, rows: Int64, scores: Float32, allowed: Bool | None, bias: Float32 | None
    ) -> tuple[Int64, Float32]:
        """Return the candidates and the full matches of the words, each once."""
        new = self.literal[~self._among(self.literal, rows)]
        if allowed is not None:
            new = new[allowed[new]]
        if not len(new):
            return rows, scores
        gained = self.plain(new) if bias is None else self.plain(new) - bias[new]
        return np.concatenate([rows, new]), np.concatenate([scores, gained])

    def _lifted(self, rows: Int64, scores: Scores) -> Scores:
        """Scores of candidates, those of full matches of the words at least that of the best guess."""
        literal = self._among(rows, self.literal)
        if not literal.any() or literal.all():
            return scores
        guesses = ~literal
        sure = self.confidences(rows)
        if sure is not None:
            guesses &= sure < SURE
        level = scores[guesses].max(initial=-np.inf)
        return np.where(literal, np.maximum(scores, level), scores)

    def _confident(self, rows: Int64, least: float) -> Bool:
        """Which of these items are sure enough."""
        if least <= 0 or not len(rows):
            return np.ones(len(rows), bool)
        confidences = self.confidences(rows)
        return np.zeros(len(rows), bool) if confidences is None else np.asarray(confidences >= least)

    def _videos(self, rows: Int64) -> Int64:
        """Where in a ranking the best item of each video is."""
        return first_places(self.searcher.snapshot.columns.video[rows])

    def moments(self, rows: Sequence[int]) -> list[StoredClip]:
        """Return what to display of each item: itself, and of a whole video its best clip."""
        snapshot, shown = self.searcher.snapshot, np.array(rows, np.int64)
        whole, video = snapshot.columns.clips["whole"], snapshot.columns.video
        videos = np.flatnonzero(whole[shown])
        if len(videos):
            at = np.searchsorted(snapshot.video_numbers, video[shown[videos]])
            own, starts = take_segments(*snapshot.segments, at)
            clips = np.flatnonzero(whole[own] == 0)
            scores = np.full(len(own), -np.inf, np.float32)
            scores[clips] = self.plain(own[clips])
            if self.scoring.norm.correction is not None:
                scores[clips] -= self.scoring.norm.correction.bias[own[clips]]
            highest, best = segment_argmax(scores, starts)
            shown[videos] = np.where(highest > -np.inf, own[best], shown[videos])
        return [snapshot.items[row] for row in shown.tolist()]
