"""The query path: words → embedding → index → hits, each with its moment and its reasons.

Clips and whole videos are items alike. A video is as good as its best item; the moment shown is its best
clip. Words that were said or shown add a bonus (`lexical`) to the items they fall into; only those items
can gain, so the best items are among the index's best and them, and the result is exact.

A `FittedNorm` corrects the ranking by a query bank: inside the index where the method allows it, otherwise by
scoring the plain best `CANDIDATES` again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wordreel.index.exact import BLOCK, ExactIndex
from wordreel.library.embeddings import Gallery
from wordreel.library.records import StoredClip, StoredFile
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.search import lexical
from wordreel.search.embedding import embedding_cache
from wordreel.search.explain import EncodedText, Spoken, overlaps, why
from wordreel.search.facts import Facts, facts_of
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit, hit_of
from wordreel.search.like import Match, like
from wordreel.search.query import checked
from wordreel.search.scoring import PLAIN, ConfidenceFunction, FittedNorm
from wordreel.search.segments import Scores, best_of, concat_segments, segment_argmax
from wordreel.search.video_query import VideoQuery
from wordreel.types import Bool, Float32, Int64

CANDIDATES = 1_000  # items that a rescoring method sees
RESCORED_AT_ONCE = 4_096  # items, when all of them are rescored for an evaluation


@dataclass(frozen=True)
class _Scored:
    row: int
    score: float


class Searcher:
    """A library opened for searching with one model. Sees what the library held when it was made."""

    def __init__(self, store: LibraryStore, model: Model) -> None:
        self.store = store
        self.model = model
        known = {clip.id: clip for clip in store.clips()}
        gallery = embedding_cache(store, model).load()
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
        norm: FittedNorm = PLAIN,
        confidence: ConfidenceFunction | None = None,
        min_confidence: float = 0.0,
        offset: int = 0,
    ) -> list[Hit]:
        """The best videos for some words, best first; with `moments`, the best moments of any video.

        With `confidence` every hit says how sure it is, and items below `min_confidence` are left out. The
        first `offset` hits are passed over without asking why they were found.
        """
        [words] = checked([text], limit, confidence, min_confidence)
        paths = (filters or Filters()).paths(self._files, self.facts)
        if not paths:
            return []
        allowed = np.full(len(self), len(paths) == len(self._rows_of))
        if not allowed.all():
            for content in paths:
                allowed[self._rows_of[content]] = True
        asked = self.ask(words)
        sure: Float32 | None = None
        known: Float32 | None = None
        if confidence is not None and len(self):
            every = self._index.scores(asked.query.vectors[None], asked.query.weights[None], slice(None))
            plain = every[0].copy()
            plain[list(asked.bonus)] += np.array(list(asked.bonus.values()), np.float32)
            sure = confidence(plain, self.best_rows(plain[None])[0])
            allowed &= sure >= min_confidence
            # A product over more than one block may round a few items otherwise than the blocks that rank.
            known = every if len(self) <= BLOCK else None
        ranked, corrected = self._ranked(asked, known, allowed, offset + limit, moments, norm)
        label = norm.label if corrected else PLAIN.label
        found = []
        for rank, scored in enumerate(ranked[offset:], start=offset + 1):
            confident = None if sure is None else float(sure[scored.row])
            found.append(self._hit(scored, asked, norm, paths, rank=rank, confidence=confident, norm=label))
        return found

    def ask(self, words: str) -> EncodedText:
        """Some words as a question to this searcher."""
        spoken = self._spoken(words)
        return EncodedText(self.model.encode([words])[0], spoken, self._bonus(spoken))

    def facts(self) -> Mapping[str, Facts]:
        """What filters want to know of every video."""
        return self._facts

    @cached_property
    def _facts(self) -> Mapping[str, Facts]:
        return facts_of(self.store)

    def contents(self) -> list[str]:
        """Every video that can be found, in the order of the columns of `scores`."""
        return list(self._rows_of)

    def scores(self, texts: Sequence[str], norm: FittedNorm = PLAIN) -> Scores:
        """`[texts, videos]`: each video as good as its best item, just as `search` ranks them."""
        return self.best_items(next(self.item_scores(texts, [norm])))

    def item_scores(self, texts: Sequence[str], norms: Sequence[FittedNorm]) -> Iterator[Scores]:
        """`[texts, items]` under each norm in turn; float64 where one rescores, float32 elsewhere."""
        queries = self.model.encode([text.strip() for text in texts])
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
        return best_of(items[:, order], edges)

    def best_rows(self, items: Scores) -> Int64:
        """`[texts, items]` to `[texts, videos]`: the best item of each video, the first of equals."""
        order, edges = self._by_video
        return np.asarray(order[segment_argmax(items[:, order], edges)[1]], np.int64)

    @cached_property
    def _by_video(self) -> tuple[Int64, Int64]:
        """The rows of all items, video by video, and where each video begins."""
        return concat_segments(self._rows_of.values())

    def coverage(self, contents: Sequence[str]) -> dict[str, float]:
        """The share of these videos that each expert has something to say about."""
        rows = [self._rows_of[content] for content in contents]
        speaks = np.array([self.gallery.available[found].any(axis=0) for found in rows])
        return dict(zip(self.model.experts, speaks.mean(axis=0).round(4).tolist(), strict=True))

    def _plain(self, asked: EncodedText, rows: Int64) -> Float32:
        """Similarity and bonus of some items, without any correction."""
        extra = np.array([asked.bonus.get(row, 0.0) for row in rows.tolist()], np.float32)
        plain = self._index.scores(asked.query.vectors[None], asked.query.weights[None], rows)[0] + extra
        return np.asarray(plain, np.float32)

    def _ranked(
        self,
        asked: EncodedText,
        known: Float32 | None,
        allowed: Bool,
        limit: int,
        moments: bool,
        norm: FittedNorm,
    ) -> tuple[list[_Scored], bool]:
        """The best item of each video (or the best moments), looking deeper until there are enough, and
        whether the norm held for this query. `known [1, items]` are the similarities, if they were made."""
        vectors, weights = asked.query.vectors[None], asked.query.weights[None]
        extra = np.array([row for row in asked.bonus if allowed[row]], np.int64)
        depth = 4 * limit if norm.rescore is None else max(CANDIDATES, 4 * limit)
        while True:
            k = min(depth, len(self))
            found = self._index.search(vectors, weights, k, allowed, norm.correction, known)
            rows = found.rows[0][found.rows[0] >= 0]
            scores = dict(zip(rows.tolist(), found.scores[0].tolist(), strict=False))
            if len(extra):
                gained = self._plain(asked, extra)
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

    def _spoken(self, text: str) -> Spoken:
        """Each query term with the rows of words that hold it."""
        return {term: self.store.search_words([term], limit=10_000) for term in lexical.terms_of(text)}

    def _bonus(self, spoken: Spoken) -> dict[int, float]:
        """The bonus of every item in which some query term was said or shown."""
        counts = {term: len({row.content for row in rows}) for term, rows in spoken.items()}
        matched: dict[int, set[str]] = {}
        for term, rows in spoken.items():
            for word in rows:
                for row in self._rows_of.get(word.content, ()):
                    if overlaps(self._items[row], word):
                        matched.setdefault(row, set()).add(term)
        videos = len(self._rows_of)
        return {row: lexical.bonus(counts, terms, videos) for row, terms in matched.items()}

    def _hit(
        self,
        scored: _Scored,
        asked: EncodedText,
        ranked_by: FittedNorm,
        paths: Mapping[str, str],
        **more: Any,
    ) -> Hit:
        item = self._items[scored.row]
        moment = self._moment(item, asked, ranked_by)
        reasons = why(self, scored.row, asked)
        return hit_of(
            Hit, self.store, item, moment, paths[item.content], score=scored.score, why=reasons, **more
        )

    def _moment(self, item: StoredClip, asked: EncodedText, norm: FittedNorm) -> StoredClip:
        """What to show of an item: itself, and of a whole video its best clip."""
        found = [row for row in self._rows_of[item.content] if not self._items[row].whole]
        if not item.whole or not found:
            return item
        rows = np.array(found, np.int64)
        total = self._plain(asked, rows)
        if norm.correction is not None:
            total = total - norm.correction.bias[rows]
        return self._items[found[int(np.argmax(total))]]

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

    def like(self, sample: VideoQuery, limit: int = 10, filters: Filters | None = None) -> list[Match]:
        """The videos most like a given one, best first."""
        return like(self, sample, limit, filters)
