"""The query path: words → embedding → index → hits, each with its moment and its reasons.

Clips and whole videos are items alike. A video is as good as its best item; the moment shown is its best
clip. Words that were said or shown add a bonus (`lexical`) to the items they fall into; only those items
can gain, so the best items are among the index's best and them, and the result is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import QueryError
from wordreel.index.exact import ExactIndex
from wordreel.library.embeddings import Gallery
from wordreel.library.records import StoredClip, WordRow
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.search import lexical
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit, Reason
from wordreel.search.refresh import cache_of, tracks_of
from wordreel.types import Bool, Float32, QueryEmbedding

LONGEST_QUERY = 10_000  # characters


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
        self._vectors, self._available = gallery.vectors, gallery.available
        self._index = ExactIndex(gallery.vectors, gallery.available)
        self._rows_of: dict[str, list[int]] = {}
        for row, item in enumerate(self._items):
            self._rows_of.setdefault(item.content, []).append(row)
        self._files = [file for file in store.files() if file.content in self._rows_of]

    def __len__(self) -> int:
        return len(self._items)

    def search(
        self, text: str, limit: int = 10, filters: Filters | None = None, moments: bool = False
    ) -> list[Hit]:
        """The best videos for some words, best first; with `moments`, the best moments of any video."""
        words = text.strip()
        if not words:
            raise QueryError("the query is empty; say what to look for")
        if len(words) > LONGEST_QUERY:
            raise QueryError(f"the query has {len(words)} characters; {LONGEST_QUERY} are allowed")
        if limit < 1:
            raise QueryError(f"cannot show {limit} results; ask for 1 or more")
        paths = (filters or Filters()).paths(self._files)
        if not paths:
            return []
        allowed = np.zeros(len(self), bool)
        for content in paths:
            allowed[self._rows_of[content]] = True
        query = self.model.queries([words])[0]
        spoken = self._spoken(words)
        bonus = self._bonus(spoken)
        ranked = self._ranked(query, bonus, allowed, limit, moments)
        return [
            self._hit(rank, scored, query, spoken, bonus, paths)
            for rank, scored in enumerate(ranked, start=1)
        ]

    def contents(self) -> list[str]:
        """Every video that can be found, in the order of the columns of `scores`."""
        return list(self._rows_of)

    def scores(self, texts: Sequence[str]) -> Float32:
        """`[texts, videos]`: each video as good as its best item, just as `search` ranks them."""
        queries = self.model.queries([text.strip() for text in texts])
        vectors, weights = np.stack([q.vectors for q in queries]), np.stack([q.weights for q in queries])
        items = self._index.scores(vectors, weights, slice(None))
        for row, text in enumerate(texts):
            for item, extra in self._bonus(self._spoken(text)).items():
                items[row, item] += extra
        order = np.concatenate([np.array(rows) for rows in self._rows_of.values()])
        edges = np.cumsum([0, *(len(rows) for rows in self._rows_of.values())])[:-1]
        best: Float32 = np.maximum.reduceat(items[:, order], edges, axis=1)
        return best

    def coverage(self, contents: Sequence[str]) -> dict[str, float]:
        """The share of these videos that each expert has something to say about."""
        rows = [self._rows_of[content] for content in contents]
        speaks = np.array([self._available[found].any(axis=0) for found in rows])
        return dict(zip(self.model.experts, speaks.mean(axis=0).round(4).tolist(), strict=True))

    def _ranked(
        self, query: QueryEmbedding, bonus: dict[int, float], allowed: Bool, limit: int, moments: bool
    ) -> list[_Scored]:
        """The best item of each video (or the best moments), looking deeper until there are enough."""
        vectors, weights = query.vectors[None], query.weights[None]
        depth = 4 * limit
        while True:
            found = self._index.search(vectors, weights, min(depth, len(self)), allowed)
            rows = found.rows[0][found.rows[0] >= 0]
            scores = dict(zip(rows.tolist(), found.scores[0].tolist(), strict=False))
            extra = np.array([row for row in bonus if allowed[row]], np.int64)
            if len(extra):
                plain = self._index.scores(vectors, weights, extra)[0]
                scores |= {int(row): float(s) + bonus[int(row)] for row, s in zip(extra, plain, strict=True)}
            everything = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
            chosen = self._moments(everything) if moments else self._videos(everything)
            if len(chosen) >= limit or len(rows) < depth:
                return chosen[:limit]
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
    ) -> Hit:
        item = self._items[scored.row]
        moment = item if not item.whole else self._best_clip(item, query, bonus)
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

    def _best_clip(self, whole: StoredClip, query: QueryEmbedding, bonus: dict[int, float]) -> StoredClip:
        rows = [row for row in self._rows_of[whole.content] if not self._items[row].whole]
        if not rows:
            return whole
        plain = self._index.scores(query.vectors[None], query.weights[None], np.array(rows, np.int64))[0]
        total = plain + np.array([bonus.get(row, 0.0) for row in rows], np.float32)
        return self._items[rows[int(np.argmax(total))]]

    def _reasons(
        self, row: int, query: QueryEmbedding, spoken: dict[str, list[WordRow]], bonus: dict[int, float]
    ) -> tuple[Reason, ...]:
        """Each expert's share of the score, w a ⟨q, v⟩ / Σ w a, and the matched words' bonus."""
        item = self._items[row]
        share = _shares(query, np.asarray(self._vectors[row]), self._available[row])
        said = self.model.explain(query, tracks_of(self.store, self.model, item.content), item.clip)
        reasons = [
            Reason(expert, float(share[number]), *said[expert])
            for number, expert in enumerate(self.model.experts)
            if expert in said
        ]
        if row in bonus:
            reasons.append(_quotation(item, spoken, bonus[row]))
        return tuple(sorted(reasons, key=lambda reason: -reason.share))


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
