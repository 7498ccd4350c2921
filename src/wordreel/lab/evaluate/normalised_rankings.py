"""Rank a similarity matrix before and after a query-bank normalisation.

One pass over the matrix, in blocks shared out between threads. Neither the plain nor the corrected scores are
stored, unless they are to be saved, and then they go straight into the file. Inputs are never written to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import HubnessError, NextStep
from wordreel.hubness import (
    Direction,
    GatedScores,
    Method,
    State,
    choose_beta_unlabelled,
)
from wordreel.hubness.blocks import widen
from wordreel.lab.evaluate.matrices import new_matrix
from wordreel.retrieval.caption_ranks import Captions, row_blocks
from wordreel.retrieval.caption_ranks import Protocol as VideoToText
from wordreel.retrieval.rankings import Ranking, rank_own_items, rank_queries, rank_right_items
from wordreel.types import Array, Bool

BETA_SAMPLE = 4096  # bank queries looked at to choose β


@dataclass(frozen=True)
class Normalisation:
    """A method with the bank it is fitted on, for one direction.

    `bank` is `[bank queries, videos]` for text to video and `[bank videos, captions]` for video to text; None
    for transductive methods, which are fitted on the test queries.
    """

    method: Method
    bank: Array | None = None
    source: str = ""  # what the label calls the bank
    direction: Direction = Direction.TEXT_TO_VIDEO
    seen: bool = False  # the bank holds test queries
    device: str = "cpu"
    save: Path | None = None  # where the normalised scores go, as `.npy`

    @property
    def transductive(self) -> bool:
        """Whether the ranking of a query depends on the other test queries."""
        return self.method.transductive or self.seen

    @property
    def label(self) -> str:
        return self.method.label(self.source, 0 if self.bank is None else len(self.bank), self.seen)


@dataclass(frozen=True)
class NormalisedRankings:
    """Rankings before and after a normalisation. `corrected` is None for methods that correct every query."""

    before: Ranking
    after: Ranking
    queries: int
    items: int
    corrected: int | None


@dataclass(frozen=True)
class GalleryColumns:
    """A matrix of which only some columns are gallery items: `columns` is None where all are."""

    rows: Array
    columns: Bool | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        items = self.rows.shape[1] if self.columns is None else int(self.columns.sum())
        return (len(self.rows), items)

    def read(self, start: int, stop: int) -> Array:
        rows = self.rows[start:stop]
        return rows if self.columns is None else rows[:, self.columns]


def rank_normalised(
    method: Method,
    bank: Array,
    test: Array,
    captions: Captions,
    direction: Direction = Direction.TEXT_TO_VIDEO,
    *,
    protocol: VideoToText = "ce",
    gallery_bank: Array | None = None,
    save: Path | None = None,
    k: int = 10,
    device: str = "cpu",
) -> NormalisedRankings:
    """Rank `test` as it is and normalised by `bank`.

    Args:
        method: The normalisation. A transductive one is fitted on the valid test queries, not on the bank.
        bank: `[bank queries, gallery]` similarities.
        test: `[queries, gallery]` similarities. Text to video: rows are captions, columns videos. Video to
            text: rows are videos, columns captions; captions that are not valid are no gallery items.
        captions: Which captions belong to which video, and which are valid.
        direction: Who asks.
        protocol: How video to text is counted: by the best caption or by groups.
        gallery_bank: The second bank of the dual methods.
        save: Write the corrected scores to this `.npy` file.
        k: Of the k-occurrences.
        device: Where to fit: `cpu`, `cuda` or `auto`.

    Raises:
        HubnessError: The matrices do not fit together, or the file cannot be written.
    """
    check_shapes(bank, test, captions, direction)
    backwards = direction is Direction.VIDEO_TO_TEXT
    columns = captions.valid if backwards and not captions.valid.all() else None
    source = GalleryColumns(test, columns)
    asks = np.ones(len(test), bool) if backwards else captions.valid
    owner = captions.owner[captions.valid]
    answers = rank_right_items(captions.owner)
    if backwards:
        answers = rank_own_items(owner, grouped=protocol == "clip")
    state = _fit(method, bank, gallery_bank, source, asks, device)
    queries, items = source.shape
    corrected = np.zeros(queries, bool)

    with new_matrix(save, test.shape, method.score_kind(widen(test[:1]).dtype)) as out:

        def scores_of(start: int, stop: int) -> list[Array]:
            rows = widen(source.read(start, stop))
            scores = method.apply(rows, state, threads=1)
            if isinstance(scores, GatedScores):
                corrected[start:stop] = scores.activated
                scores = scores.ranking_scores
            if out is not None:
                _write(out[start:stop], scores, columns)
            return [rows, scores]

        before, after = rank_queries(scores_of, answers, queries, items, 2, k=k)
    counted = asks & before.answered
    return NormalisedRankings(
        before.only(counted),
        after.only(counted),
        int(counted.sum()),
        items,
        int(corrected[counted].sum()) if method.gated else None,
    )


def _fit(
    method: Method,
    bank: Array,
    gallery_bank: Array | None,
    test: GalleryColumns,
    asks: Bool,
    device: str,
) -> State:
    if method.transductive:
        blocks = (test.read(span.start, span.stop)[asks[span]] for span, _ in row_blocks(test.rows))
        return method.fit(blocks, device=device)
    if gallery_bank is None:
        return method.fit(GalleryColumns(bank, test.columns), device=device)
    # Sinkhorn compares its second bank with the queries, the others with the gallery.
    second = GalleryColumns(gallery_bank, test.columns if method.streaming else None)
    return method.fit(GalleryColumns(bank, test.columns), second, device=device)


def check_shapes(bank: Array, test: Array, captions: Captions, direction: Direction) -> None:
    """Refuse matrices that do not belong together."""
    shape = (len(captions), captions.videos)
    expected = shape if direction is Direction.TEXT_TO_VIDEO else shape[::-1]
    if test.shape != expected:
        raise HubnessError(f"the test matrix is {list(test.shape)}, but {list(expected)} is expected")
    if bank.shape[1] != test.shape[1]:
        raise HubnessError(
            f"the bank has {bank.shape[1]} columns but the test matrix has {test.shape[1]}; the columns of "
            "both are the same gallery, and rows are queries"
        )


def with_automatic_beta(method: Method, bank: Array, columns: Bool | None = None) -> Method:
    """Return the method with a β chosen without labels, from a sample of the bank, in those `columns`."""
    if not hasattr(method, "beta"):
        raise HubnessError(f"{method.name!r} has no beta to choose", NextStep("leave out --beta"))
    sample = bank[:: -(-len(bank) // BETA_SAMPLE)]
    beta = choose_beta_unlabelled(sample if columns is None else sample[:, columns])
    untyped: Any = method
    changed: Method = replace(untyped, beta=beta)
    return changed


def _write(out: Array, scores: Array, columns: Bool | None) -> None:
    if columns is None:
        out[:] = scores
        return
    out[:] = scores.min(axis=1, keepdims=True) - 1  # what is no item ranks below every item
    out[:, columns] = scores
