"""A bank embedded by a searcher's model: fits normalisations and confidences to the searcher's items."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from wordreel.banks.fitted_states import FitBank, FittedState, load_or_fit
from wordreel.banks.query_embeddings import BankEmbeddings, bank_cache_dir, embed_queries
from wordreel.catalogue.banks import Bank
from wordreel.embed.embedding_cache import Gallery
from wordreel.errors import NOT_WRITABLE
from wordreel.hubness import choose_beta_unlabelled, mixtures
from wordreel.hubness.beta import PUBLISHED, SPREADS
from wordreel.hubness.confidence import CHECKED, Confidence
from wordreel.hubness.method import Method
from wordreel.hubness.methods.globally_corrected import GloballyCorrected, SortedColumns
from wordreel.hubness.standard_score import StandardScore
from wordreel.index.base import Correction
from wordreel.progress import ProgressCallback
from wordreel.search.query import check_norm
from wordreel.search.scoring import PLAIN, FittedNorm, RivalScores
from wordreel.search.searcher import Searcher
from wordreel.types import Float32, Float64, Int64
from wordreel.util.atomic import atomic_write, make_dir
from wordreel.util.even_sample import even_sample

MOST_CACHED = 50_000_000  # similarities of GC, 200 MB
FEWEST_FOR_CONFIDENCE = 100  # queries; smaller banks are overconfident
FEWEST_FOR_BETA = 2  # queries that have a spread
BETA_QUERIES = 2_000
BETA_ITEMS = 4_000


@dataclass(frozen=True, eq=False)
class GCRescorer:
    """Score candidates by globally corrected retrieval.

    The score is minus the number of bank queries that the item likes better, plus the similarity squeezed
    into (0, 1) to break ties. Cost O(bank · candidates) a query, unless the sorted bank of all items is
    `whole`, O(bank · items) memory, as for many queries at once.
    """

    bank: BankEmbeddings
    gallery: Gallery
    whole: SortedColumns | None = None

    def columns(self, rows: Int64) -> SortedColumns:
        """Return the sorted bank similarities of some items."""
        if self.whole is not None:
            return replace(self.whole, sorted=self.whole.sorted[rows])
        source = mixtures(
            self.bank.vectors, self.bank.weights, self.gallery.vectors[rows], self.gallery.available[rows]
        )
        return GloballyCorrected().fit(source).statistic(SortedColumns)

    def cached(self) -> GCRescorer:
        """Return this with the sorted bank of all items, if it takes no more than `MOST_CACHED` values."""
        if len(self.bank.ids) * len(self.gallery.ids) > MOST_CACHED:
            return self
        return replace(self, whole=self.columns(np.arange(len(self.gallery.ids))))

    def __call__(self, scores: Float32, rows: Int64) -> Float64:
        """Score some items `rows` by their plain `scores`."""
        wide = scores.astype(np.float64)
        greater = self.columns(rows).greater(scores)
        return np.asarray(0.5 + wide / (2 + 2 * np.abs(wide)) - greater, np.float64)


@dataclass(frozen=True, eq=False)
class EmbeddedBank:
    """A bank embedded by a searcher's model, and the searcher whose items it corrects."""

    searcher: Searcher
    bank: Bank
    vectors: BankEmbeddings

    @staticmethod
    def open(searcher: Searcher, bank: Bank, on_progress: ProgressCallback | None = None) -> EmbeddedBank:
        """Embed the queries of a bank that are not embedded yet, and return it."""
        return EmbeddedBank(searcher, bank, embed_queries(searcher.store, searcher.model, bank, on_progress))

    @property
    def gallery(self) -> Gallery:
        """Return the embeddings of the items."""
        return self.searcher.snapshot.gallery

    def current(self) -> BankEmbeddings:
        """Return the embeddings of exactly the bank's queries, in its order."""
        return self.vectors.of(np.array(self.bank.ids, np.int64))

    def fit(self, method: Method, fit: FitBank | None = None) -> FittedState:
        """Fit a method with the bank, or read it from the cache; `fit` fits somewhere else."""
        folder = bank_cache_dir(self.searcher.store, self.searcher.model, self.bank.name)
        return load_or_fit(self.searcher.store, folder, self.bank, self.vectors, self.gallery, method, fit)

    def confidence(self) -> SearchConfidence | None:
        """Return the confidence of this searcher's hits; None where the bank is too small."""
        if len(self.bank) < FEWEST_FOR_CONFIDENCE or not len(self.searcher):
            return None
        fitted = self.fit(StandardScore())
        calibration = self.searcher.model.calibration or CHECKED
        return SearchConfidence(Confidence(fitted.state, calibration), fitted.rows_of(self.gallery.ids))

    def label(self, method: Method) -> str:
        """Return the label of scores that are corrected with this bank."""
        return method.label(self.bank.name, len(self.bank))

    def norm(self, method: Method) -> FittedNorm:
        """Fit a method to this searcher's items with the bank."""
        if method.name == "none":
            return PLAIN
        check_norm(method.name)
        if not len(self.searcher):
            return PLAIN
        label = self.label(method)
        if method.name == "gc":
            return FittedNorm(label, rescore=GCRescorer(self.current(), self.gallery))
        fitted = self.fit(method)
        active = fitted.active(self.gallery.ids) if method.gated else None
        return FittedNorm(label, Correction(fitted.bias(self.gallery.ids), active))


@dataclass(frozen=True, eq=False)
class SearchConfidence:
    """A `Confidence` for the items of one searcher; all its videos compete for a query."""

    confidence: Confidence
    rows: Int64  # where each row of the searcher is in the state; -1 for those that are not live

    def __call__(self, scores: Float32, rows: Int64, rivals: RivalScores) -> Float32:
        """Return the confidence of each hit, from its score, its row and its rivals."""
        if not len(rows):
            return np.zeros(0, np.float32)
        known = self.confidence.rivals(rivals.scores, best=rivals.best, count=rivals.videos)
        return self.confidence.of(scores, self.rows[rows], known)


def unlabelled_beta(embedded: EmbeddedBank) -> float:
    """Return β of `hubness.choose_beta_unlabelled` on at most 2,000 queries and 4,000 items, evenly spaced.

    The choice is cached until the bank changes; new videos alone do not change it.
    """
    if len(embedded.bank) < FEWEST_FOR_BETA or not len(embedded.searcher):
        return PUBLISHED
    path = bank_cache_dir(embedded.searcher.store, embedded.searcher.model, embedded.bank.name) / "beta.json"
    valid = {"revision": embedded.bank.revision, "spreads": SPREADS}
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        known = json.loads(path.read_bytes())
        if valid.items() <= known.items():
            return float(known["beta"])
    live = embedded.gallery.live_rows
    queries, items = even_sample(len(embedded.bank), BETA_QUERIES), live[even_sample(len(live), BETA_ITEMS)]
    some = embedded.current()
    sims = mixtures(
        some.vectors[queries],
        some.weights[queries],
        embedded.gallery.vectors[items],
        embedded.gallery.available[items],
    ).read(0, len(queries))
    beta = choose_beta_unlabelled(sims)
    with suppress(*NOT_WRITABLE), embedded.searcher.store.writing():
        make_dir(path.parent)
        atomic_write(path, json.dumps({**valid, "beta": beta}).encode())
    return beta
