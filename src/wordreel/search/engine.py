"""The query path: words → embedding → index → hits, each with its moment and its reasons.

Clips and whole videos are items alike. A video is as good as its best item; the moment shown is its best
clip. Words that were said or shown add a bonus (`lexical`) to the items they fall into; only those items
can gain, so the best items are among the index's best and them, and the result is exact.

A `Norm` corrects the ranking by a query bank: inside the index where the method allows it, otherwise by
scoring the plain best `CANDIDATES` again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import QueryError
from wordreel.index.exact import ExactIndex
from wordreel.library.embeddings import Gallery
from wordreel.library.records import StoredClip, StoredFile, WordRow
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.search import lexical
from wordreel.search.facts import Facts, facts_of
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit, Reason
from wordreel.search.like import Match, like
from wordreel.search.norm import PLAIN, ConfidenceOf, Norm
from wordreel.search.refresh import cache_of, tracks_of
from wordreel.search.sample import Sample
from wordreel.types import Bool, Float32, Int64, QueryEmbedding

Scores = NDArray[np.floating[Any]]

LONGEST_QUERY = 10_000  # characters
CANDIDATES = 1_000  # items that a rescoring method sees
RESCORED_AT_ONCE = 4_096  # items, when all of them are rescored for an evaluation


@dataclass(frozen=True)
class _Scored:
    row: int
    score: float


class Engine:
    """A library opened for searching with one model. Sees what the library held when it was made."""

    def __init__(self, store: LibraryStore, model: Model) -> None:
        self.store = store
        self.model = model
        known = {clip.id: clip for clip in store.clips()}
        gallery = cache_of(store, model).load()
        # Somebody may add or remove videos between the two looks: only what both saw counts.
        if not all(int(number) in known for number in gallery.ids):
            both = np.isin(gallery.ids, list(known))
            gallery = Gallery(gallery.ids[both], gallery.vectors[both], gallery.available[both])
        self._items: list[StoredClip] = [known[int(number)] for number in gallery.ids]
        self.gallery = gallery
        self._index = ExactIndex(gallery.vectors, gallery.available)
        self._rows_of: dict[str, list[int]] = {}
        for row, item in enumerate(self._items):
            self._rows_of.setdefault(item.content, []).append(row)
        self._files = [file for file in store.files() if file.content in self._rows_of]

    def __len__(self) -> int:
        return len(self._items)

    def search(
        self,
        text: str,
        limit: int = 10,
        filters: Filters | None = None,
        moments: bool = False,
        norm: Norm = PLAIN,
        confidence: ConfidenceOf | None = None,
        min_confidence: float = 0.0,
        offset: int = 0,
    ) -> list[Hit]:
        """The best videos for some words, best first; with `moments`, the best moments of any video.

        With `confidence` every hit says how sure it is, and items below `min_confidence` are left out. The
        first `offset` hits are passed over without asking why they were found.
        """
        words = text.strip()
        if not words:
            raise QueryError("the query is empty; say what to look for")
        if len(words) > LONGEST_QUERY:
            raise QueryError(f"the query has {len(words)} characters; {LONGEST_QUERY} are allowed")
        if limit < 1:
            raise QueryError(f"cannot show {limit} results; ask for 1 or more")
        if min_confidence > 0 and confidence is None:
            raise QueryError("a least confidence needs a query bank; `wordreel bank build` makes one")
        paths = (filters or Filters()).paths(self._files, self.facts)
        if not paths:
            return []
        allowed = np.full(len(self), len(paths) == len(self._rows_of))
        if not allowed.all():
            for content in paths:
                allowed[self._rows_of[content]] = True
        query = self.model.queries([words])[0]
        spoken = self._spoken(words)
        bonus = self._bonus(spoken)
        sure: Float32 | None = None
        if confidence is not None and len(self):
            plain = self._plain(query, bonus)
            sure = confidence(plain, self.best_rows(plain[None])[0])
            allowed &= sure >= min_confidence
        ranked, corrected = self._ranked(query, bonus, allowed, offset + limit, moments, norm)
        label = norm.label if corrected else PLAIN.label
        return [
            replace(
                self._hit(rank, scored, query, spoken, bonus, paths, norm),
                confidence=None if sure is None else float(sure[scored.row]),
                norm=label,
            )
            for rank, scored in enumerate(ranked[offset:], start=offset + 1)
        ]

    def facts(self) -> Mapping[str, Facts]:
        """What filters want to know of every video."""
        return self._facts

    @cached_property
    def _facts(self) -> Mapping[str, Facts]:
        return facts_of(self.store)

    def contents(self) -> list[str]:
        """Every video that can be found, in the order of the columns of `scores`."""
        return list(self._rows_of)

    def scores(self, texts: Sequence[str], norm: Norm = PLAIN) -> Scores:
        """`[texts, videos]`: each video as good as its best item, just as `search` ranks them."""
        return self.best_items(next(self.item_scores(texts, [norm])))

    def item_scores(self, texts: Sequence[str], norms: Sequence[Norm]) -> Iterator[Scores]:
        """`[texts, items]` under each norm in turn; float64 where one rescores, float32 elsewhere."""
        queries = self.model.queries([text.strip() for text in texts])
        vectors, weights = np.stack([q.vectors for q in queries]), np.stack([q.weights for q in queries])
        plain = self._index.scores(vectors, weights, slice(None))
        first = plain.argmax(axis=1) if len(self) else np.zeros(len(texts), np.int64)
        for row, text in enumerate(texts):
            for item, extra in self._bonus(self._spoken(text)).items():
                plain[row, item] += extra
        for norm in norms:
            if norm.rescore is not None:
                parts = np.split(np.arange(len(self)), range(RESCORED_AT_ONCE, len(self), RESCORED_AT_ONCE))
                yield np.concatenate([norm.rescore(plain[:, some], some) for some in parts], axis=1)
            elif norm.correction is None or not len(self):
                yield plain.copy()
            elif norm.correction.active is None:
                yield plain - norm.correction.bias
            else:
                opened = norm.correction.active[first]
                yield plain - np.where(opened[:, None], norm.correction.bias, np.float32(0))

    def best_items(self, items: Scores) -> Scores:
        """`[texts, items]` to `[texts, videos]`, by the best item of each video."""
        order, edges = self._by_video
        best: Scores = np.maximum.reduceat(items[:, order], edges, axis=1)
        return best

    def best_rows(self, items: Scores) -> Int64:
        """`[texts, items]` to `[texts, videos]`: the best item of each video, the first of equals."""
        order, edges = self._by_video
        sorted_items = items[:, order]
        best = np.maximum.reduceat(sorted_items, edges, axis=1)
        sizes = np.diff(np.append(edges, len(order)))
        reached = np.where(sorted_items == np.repeat(best, sizes, axis=1), np.arange(len(order)), len(order))
        return np.asarray(order[np.minimum.reduceat(reached, edges, axis=1)], np.int64)

    @cached_property
    def _by_video(self) -> tuple[Int64, Int64]:
        """The rows of all items, video by video, and where each video begins."""
        rows = list(self._rows_of.values())
        return np.concatenate([np.array(r, np.int64) for r in rows]), np.cumsum([0, *map(len, rows)])[:-1]

    def coverage(self, contents: Sequence[str]) -> dict[str, float]:
        """The share of these videos that each expert has something to say about."""
        rows = [self._rows_of[content] for content in contents]
        speaks = np.array([self.gallery.available[found].any(axis=0) for found in rows])
        return dict(zip(self.model.experts, speaks.mean(axis=0).round(4).tolist(), strict=True))

    def _plain(self, query: QueryEmbedding, bonus: dict[int, float], rows: Int64 | None = None) -> Float32:
        """Similarity and bonus of some items (or all), without any correction."""
        at = np.arange(len(self)) if rows is None else rows
        extra = np.array([bonus.get(int(row), 0.0) for row in at], np.float32) if bonus else np.float32(0)
        chosen = slice(None) if rows is None else rows
        plain = self._index.scores(query.vectors[None], query.weights[None], chosen)[0] + extra
        return np.asarray(plain, np.float32)

    def _ranked(
        self,
        query: QueryEmbedding,
        bonus: dict[int, float],
        allowed: Bool,
        limit: int,
        moments: bool,
        norm: Norm,
    ) -> tuple[list[_Scored], bool]:
        """The best item of each video (or the best moments), looking deeper until there are enough, and
        whether the norm held for this query."""
        vectors, weights = query.vectors[None], query.weights[None]
        extra = np.array([row for row in bonus if allowed[row]], np.int64)
        depth = 4 * limit if norm.rescore is None else max(CANDIDATES, 4 * limit)
        while True:
            found = self._index.search(vectors, weights, min(depth, len(self)), allowed, norm.correction)
            rows = found.rows[0][found.rows[0] >= 0]
            scores = dict(zip(rows.tolist(), found.scores[0].tolist(), strict=False))
            if len(extra):
                gained = self._plain(query, bonus, extra)
                if norm.correction is not None and found.corrected[0]:
                    gained = gained - norm.correction.bias[extra]
                scores |= dict(zip(extra.tolist(), gained.tolist(), strict=True))
            if norm.rescore is not None and scores:
                some = np.array(list(scores), np.int64)
                plain = np.array(list(scores.values()), np.float32)
                scores = dict(zip(some.tolist(), norm.rescore(plain[None], some)[0].tolist(), strict=True))
            everything = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
            chosen = self._moments(everything) if moments else self._videos(everything)
            if len(chosen) >= limit or len(rows) < depth:
                return chosen[:limit], norm.rescore is not None or bool(found.corrected[0])
            depth *= 4

    def _videos(self, ordered: list[tuple[int, float]]) -> list[_Scored]:
        best: dict[str, _Scored] = {}
        for row, score in ordered:
            best.setdefault(self._items[row].content, _Scored(row, score))
        return list(best.values())

    def _moments(self, ordered: list[tuple[int, float]]) -> list[_Scored]:
        return [
            _Scored(row, score)
            for row, score in ordered
            if not self._items[row].whole or len(self._rows_of[self._items[row].content]) == 1
        ]

    def _spoken(self, text: str) -> dict[str, list[WordRow]]:
        """Each query term with the rows of words that hold it."""
        return {term: self.store.search_words([term], limit=10_000) for term in lexical.terms_of(text)}

    def _bonus(self, spoken: dict[str, list[WordRow]]) -> dict[int, float]:
        """The bonus of every item in which some query term was said or shown."""
        counts = {term: len({row.content for row in rows}) for term, rows in spoken.items()}
        matched: dict[int, set[str]] = {}
        for term, rows in spoken.items():
            for word in rows:
                for row in self._rows_of.get(word.content, ()):
                    if _overlaps(self._items[row], word):
                        matched.setdefault(row, set()).add(term)
        videos = len(self._rows_of)
        return {row: lexical.bonus(counts, terms, videos) for row, terms in matched.items()}

    def _hit(
        self,
        rank: int,
        scored: _Scored,
        query: QueryEmbedding,
        spoken: dict[str, list[WordRow]],
        bonus: dict[int, float],
        paths: dict[str, str],
        norm: Norm,
    ) -> Hit:
        item = self._items[scored.row]
        moment = item if not item.whole else self._best_clip(item, query, bonus, norm)
        info = self.store.info(item.content)
        return Hit(
            rank=rank,
            score=scored.score,
            path=paths[item.content],
            start=moment.start,
            end=moment.end,
            kind=info.kind if info else "video",
            duration=info.duration if info else item.end,
            content=item.content,
            why=self._reasons(scored.row, query, spoken, bonus),
        )

    def _best_clip(
        self, whole: StoredClip, query: QueryEmbedding, bonus: dict[int, float], norm: Norm
    ) -> StoredClip:
        found = [row for row in self._rows_of[whole.content] if not self._items[row].whole]
        if not found:
            return whole
        rows = np.array(found, np.int64)
        total = self._plain(query, bonus, rows)
        if norm.correction is not None:
            total = total - norm.correction.bias[rows]
        return self._items[found[int(np.argmax(total))]]

    def _reasons(
        self, row: int, query: QueryEmbedding, spoken: dict[str, list[WordRow]], bonus: dict[int, float]
    ) -> tuple[Reason, ...]:
        """Each expert's share of the score, w a ⟨q, v⟩ / Σ w a, and the matched words' bonus."""
        item = self._items[row]
        share = _shares(query, np.asarray(self.gallery.vectors[row]), self.gallery.available[row])
        said = self.model.explain(query, tracks_of(self.store, self.model, item.content), item.clip)
        reasons = [
            Reason(expert, float(share[number]), *said[expert])
            for number, expert in enumerate(self.model.experts)
            if expert in said
        ]
        if row in bonus:
            reasons.append(_quotation(item, spoken, bonus[row]))
        return tuple(sorted(reasons, key=lambda reason: -reason.share))

    def why(self, row: int, text: str) -> tuple[Reason, ...]:
        """Why one item would be found with some words."""
        spoken = self._spoken(text)
        return self._reasons(row, self.model.queries([text.strip()])[0], spoken, self._bonus(spoken))

    # What the other questions, a video for videos or for captions, need to know

    @property
    def items(self) -> Sequence[StoredClip]:
        """The items, row by row of the gallery."""
        return self._items

    @property
    def files(self) -> list[StoredFile]:
        """The files of all videos that can be found, by path."""
        return self._files

    def has(self, content: str) -> bool:
        """Whether a video can be found at all."""
        return content in self._rows_of

    def rows(self, content: str) -> list[int]:
        """The rows of one video's items."""
        return self._rows_of[content]

    def bonus(self, text: str) -> dict[int, float]:
        """What words that were said or shown add to the similarity of items, by row."""
        return self._bonus(self._spoken(text))

    def like(self, sample: Sample, limit: int = 10, filters: Filters | None = None) -> list[Match]:
        """The videos most like a given one, best first."""
        return like(self, sample, limit, filters)


def _shares(query: QueryEmbedding, vectors: Float32, available: Bool) -> NDArray[np.float32]:
    weights = query.weights * available
    total = weights.sum()
    shares: NDArray[np.float32] = weights * (query.vectors * vectors).sum(axis=1)
    return shares / total if total > 0 else shares


def _overlaps(item: StoredClip, word: WordRow) -> bool:
    return item.whole or (word.start < item.end and word.end > item.start)


def _quotation(item: StoredClip, spoken: dict[str, list[WordRow]], share: float) -> Reason:
    """The line of this item that holds the most query terms."""
    lines = Counter(
        word
        for rows in spoken.values()
        for word in rows
        if word.content == item.content and _overlaps(item, word)
    )
    best, _ = max(lines.items(), key=lambda pair: (pair[1], -pair[0].start))
    return Reason(f"{best.expert} words", share, f"“{best.text}”", (best.start, best.end))
