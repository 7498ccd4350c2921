"""Globally corrected scores of candidates: the method cannot be folded into one number per item."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wordreel.banks.query_embeddings import BankEmbeddings
from wordreel.embed.embedding_cache import Gallery
from wordreel.hubness.methods.globally_corrected import GloballyCorrected, SortedColumns
from wordreel.hubness.similarity_sources import mixtures
from wordreel.types import Float32, Float64, Int64

MOST_CACHED = 50_000_000  # similarities, 200 MB


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
        """With the sorted bank of all items, where that takes no more than `MOST_CACHED` values."""
        if len(self.bank.ids) * len(self.gallery.ids) > MOST_CACHED:
            return self
        return replace(self, whole=self.columns(np.arange(len(self.gallery.ids))))

    def __call__(self, scores: Float32, rows: Int64) -> Float64:
        """Score some items `rows` by their plain `scores`."""
        wide = scores.astype(np.float64)
        greater = self.columns(rows).greater(scores)
        return np.asarray(0.5 + wide / (2 + 2 * np.abs(wide)) - greater, np.float64)
