"""`Searcher`: answers every `Query`, for the command line, Python and HTTP alike.

A searcher is immutable: a snapshot of the library, a model, how to choose a scoring, and how to analyse files
that are not in the library. To see a changed library, open another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from wordreel.catalogue.banks import BUILD_A_BANK
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import BankError, NextStep, QueryError, WeightsCorrupt
from wordreel.models.base import Evidence, Model
from wordreel.progress import ProgressCallback
from wordreel.search.explain import with_required
from wordreel.search.hits import Hit, MatchTimeline, Results
from wordreel.search.query import Query, VideoMoment
from wordreel.search.query_fields import AUTO
from wordreel.search.scoring import PLAIN, FittedNorm, Scoring
from wordreel.search.segments import Scores
from wordreel.search.snapshot import LibrarySnapshot
from wordreel.search.text_search import search_text
from wordreel.search.words.lexical import LexicalMatches, lexical_matches
from wordreel.search.words.understanding import Understanding, understand
from wordreel.types import QueryEmbedding
from wordreel.util.lru_cache import LRUCache
from wordreel.util.server_address import ServerAddress

if TYPE_CHECKING:
    from wordreel.ingest.extract import ExtractedFile
    from wordreel.search.video_query import VideoQuery

CACHED_SCORINGS = 32
CACHED_EVIDENCE = 64 * 2**20  # bytes: with the default model, of 7,000 items
RESCORED_AT_ONCE = 4_096  # items, when all of them are rescored for an evaluation
COMPARED = "csls"  # what plain ranking is compared with where "auto" is plain: it needs no β and no labels

AnalyseFile = Callable[[Path, Model], "ExtractedFile"]


class ChooseScoring(Protocol):
    """Turns `norm`, `bank` and `beta` of a query into a scoring of a searcher's items."""

    def __call__(
        self,
        searcher: Searcher,
        norm: str,
        bank: str | None,
        beta: float | None,
        on_progress: ProgressCallback | None,
    ) -> Scoring:
        """Return the scoring."""


def plain_scoring(
    searcher: Searcher,
    norm: str,
    bank: str | None,
    beta: float | None,
    on_progress: ProgressCallback | None,
) -> Scoring:
    """Return the scoring of a searcher that has no query banks."""
    if norm not in (AUTO, PLAIN.label):
        raise BankError(f"the normalisation {norm!r} needs a query bank", BUILD_A_BANK)
    return Scoring()


def refuse_file(path: Path, model: Model) -> ExtractedFile:
    """Refuse a file, for a searcher that answers only with what is in the library."""
    raise QueryError(f"{path} is not in the library")


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A text query: its embedding, and the items in which its words are spoken or on screen."""

    text: str
    embedding: QueryEmbedding
    lexical: LexicalMatches

    @cached_property
    def understanding(self) -> Understanding:
        """What the model makes of the words."""
        return understand(self.text, [term for term, found in self.lexical.terms.items() if found.videos])


@dataclass(frozen=True, eq=False)
class Searcher:
    """A library opened for searching with one model."""

    snapshot: LibrarySnapshot
    model: Model
    choose: ChooseScoring = plain_scoring
    analyse: AnalyseFile = refuse_file
    _scorings: LRUCache[tuple[str, str | None, float | None], Scoring] = field(
        default_factory=lambda: LRUCache(CACHED_SCORINGS), repr=False
    )
    evidence: LRUCache[int, Evidence] = field(
        default_factory=lambda: LRUCache(CACHED_EVIDENCE, lambda evidence: evidence.nbytes), repr=False
    )
    """What hits are explained with, by row."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def open(
        cls,
        store: LibraryStore,
        model: Model,
        choose: ChooseScoring = plain_scoring,
        analyse: AnalyseFile = refuse_file,
        server: ServerAddress | None = None,
        resident: bool = False,
    ) -> Searcher:
        """Open the library as it is now; a vector server finds the candidates if one is given.

        A `resident` one, in a program that answers many queries, uses a GPU if there is one.
        """
        return cls(LibrarySnapshot.take(store, model, server, resident), model, choose, analyse)

    def with_new_banks(self) -> Searcher:
        """Return the same snapshot with its scorings chosen again: for when the query banks have changed."""
        return replace(self, _scorings=LRUCache(CACHED_SCORINGS), _lock=threading.Lock())

    @property
    def store(self) -> LibraryStore:
        """Return the library that is searched."""
        return self.snapshot.store

    def __len__(self) -> int:
        return len(self.snapshot)

    # Queries

    def search(
        self, query: Query, scoring: Scoring | None = None, on_progress: ProgressCallback | None = None
    ) -> Results[Hit]:
        """Answer a query. `scoring` replaces what its norm, bank and beta choose."""
        if query.video is not None:
            from wordreel.search.like import find_look_alikes

            return find_look_alikes(self, self.encode_video(query.video), query).sorted_by(query.sort)
        return self._search_text(query, self.encode_texts(query.texts), scoring, on_progress)

    def search_many(
        self, queries: Sequence[Query], on_progress: ProgressCallback | None = None
    ) -> list[Results[Hit]]:
        """Answer several queries; their texts are encoded together."""
        texts = list(dict.fromkeys(text for query in queries for text in query.texts))
        encoded = dict(zip(texts, self.encode_texts(texts), strict=True))
        return [
            self.search(query)
            if query.video is not None
            else self._search_text(query, [encoded[text] for text in query.texts], None, on_progress)
            for query in queries
        ]

    def _search_text(
        self,
        query: Query,
        encoded: Sequence[EncodedText],
        scoring: Scoring | None,
        on_progress: ProgressCallback | None,
    ) -> Results[Hit]:
        find = search_text
        if query.then is not None:
            from wordreel.search.then import search_sequence

            find = search_sequence
        if not query.compare:
            chosen = scoring or self.scoring(query.norm, query.bank, query.beta, on_progress)
            return self._finished(query, find(self, encoded, query, chosen))
        chosen = scoring or self._compared(query, on_progress)
        plain = find(self, encoded, query, self.scoring("none", query.bank, None, on_progress))
        both = replace(find(self, encoded, query, chosen), plain=plain.hits)
        return self._finished(query, both)

    def _finished(self, query: Query, results: Results[Hit]) -> Results[Hit]:
        required = with_required(self.store, query, results)
        return replace(required, notices=query.notices + results.notices).sorted_by(query.sort)

    def where(self, content: str, query: Query, on_progress: ProgressCallback | None = None) -> MatchTimeline:
        """Measure how well the text of a query matches a video over time."""
        if query.text is None or query.then is not None:
            raise QueryError("a timeline needs one text", field="text")
        if content not in self.snapshot:
            raise QueryError(f"{content} is not a video of this library that can be searched")
        from wordreel.search.words.where import match_timeline

        scoring = self.scoring(query.norm, query.bank, query.beta, on_progress)
        return match_timeline(self, content, query.text, scoring)

    def scoring(
        self,
        norm: str = AUTO,
        bank: str | None = None,
        beta: float | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Scoring:
        """Return the scoring for a norm, bank and beta; chosen and fitted once."""
        key = (norm, bank, beta)
        known = self._scorings.get(key)
        if known is None:
            with self._lock:
                known = self._scorings.get(key)
                if known is None:
                    known = self.choose(self, norm, bank, beta, on_progress)
                    self._scorings.put(key, known)
        return known

    def _compared(self, query: Query, on_progress: ProgressCallback | None) -> Scoring:
        """Return the scoring to compare plain ranking with: as the query says, and not plain for "auto"."""
        chosen = self.scoring(query.norm, query.bank, query.beta, on_progress)
        if query.norm != AUTO or chosen.norm is not PLAIN:
            return chosen
        return self.scoring(COMPARED if query.beta is None else "dis", query.bank, query.beta, on_progress)

    # Encoding

    def encode_texts(self, texts: Sequence[str]) -> list[EncodedText]:
        """Encode text queries in one batch and look them up among the spoken and on-screen words."""
        words = [text.strip() for text in texts]
        return self.with_words(words, self.model.encode(words))

    def with_words(self, texts: Sequence[str], embeddings: Sequence[QueryEmbedding]) -> list[EncodedText]:
        """Return encoded texts, looked up among the spoken and on-screen words."""
        for embedding, text in zip(embeddings, texts, strict=True):
            if not (np.isfinite(embedding.vectors).all() and np.isfinite(embedding.weights).all()):
                raise WeightsCorrupt(
                    f"the model {self.model.name!r} returned values that are not finite for {text!r}",
                    NextStep("check its weights", "doctor"),
                )
        return [
            EncodedText(text, embedding, lexical_matches(self.snapshot, text))
            for embedding, text in zip(embeddings, texts, strict=True)
        ]

    def encode_video(self, video: VideoMoment) -> VideoQuery:
        """Return a video as a query: from stored tracks, or analysed now if the library does not have it."""
        from wordreel.search.video_query import encode_video

        return encode_video(self.store, self.model, video, self.analyse)

    # Scores of everything, for evaluations

    def scores(self, texts: Sequence[str | EncodedText], norm: FittedNorm = PLAIN) -> Scores:
        """Return `[texts, videos]`: each video as good as its best item.

        So `search` ranks them before it puts full matches of the words first.
        """
        return self.snapshot.best_items(next(self.item_scores(texts, [norm])))

    def item_scores(
        self, texts: Sequence[str | EncodedText], norms: Sequence[FittedNorm]
    ) -> Iterator[Scores]:
        """Yield `[texts, rows]` under each norm in turn; float64 where one rescores, float32 elsewhere.

        Scores of rows that are not live mean nothing.
        """
        new = iter(self.encode_texts([text for text in texts if isinstance(text, str)]))
        encoded = [next(new) if isinstance(text, str) else text for text in texts]
        vectors = np.stack([text.embedding.vectors for text in encoded])
        weights = np.stack([text.embedding.weights for text in encoded])
        plain = self.snapshot.index.scores(vectors, weights, slice(None))
        live = self.snapshot.live
        first = np.zeros(len(encoded), np.int64)
        if len(self):
            first = (plain if live.all() else np.where(live, plain, -np.inf)).argmax(axis=1)
        for row, text in enumerate(encoded):
            plain[row, text.lexical.items] += text.lexical.of(text.lexical.items)
        for norm in norms:
            if norm.rescore is not None:
                rows = plain.shape[1]
                parts = np.split(np.arange(rows), range(RESCORED_AT_ONCE, rows, RESCORED_AT_ONCE))
                yield np.concatenate([norm.rescore(plain[:, some], some) for some in parts], axis=1)
            elif norm.correction is None or not len(self):
                yield plain.copy()
            elif norm.correction.active is None:
                yield plain - norm.correction.bias
            else:
                opened = norm.correction.active[first]
                yield plain - np.where(opened[:, None], norm.correction.bias, np.float32(0))
