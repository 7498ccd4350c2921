"""Figures and hubness of a similarity matrix before and after a query-bank normalisation.

The bank is `[bank queries, gallery]`, the test matrix `[queries, gallery]`. One pass over the test matrix, in
blocks shared out between threads: neither the plain nor the corrected scores are kept, unless they are to be
saved, and then they go straight into the file. Inputs are never written to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import HubnessError
from wordreel.evaluate.retrieval import (
    BLOCK,
    Array,
    Captions,
    Figures,
    Ids,
    figures,
    ranks_of_columns,
    ranks_of_own,
    row_blocks,
)
from wordreel.hubness import Direction, GatedScores, Hubness, Method, choose_beta_unlabelled, measure_hubness
from wordreel.hubness.blocks import each_span, widen
from wordreel.hubness.choose_beta import GRID
from wordreel.hubness.measures import k_occurrence
from wordreel.index.topk import topk_ids
from wordreel.types import Bool, Float64

COSINE = 1.5  # similarities beyond it are logits, as in `hubness.gather`
SAMPLE = 4096  # bank queries looked at to choose β


@dataclass(frozen=True)
class Outcome:
    """What a normalisation did. `corrected` is None for methods that correct every query."""

    before: Figures
    after: Figures
    hubness_before: Hubness
    hubness_after: Hubness
    queries: int
    items: int
    corrected: int | None
    occurrences_before: Ids = field(compare=False)  # [items]
    occurrences_after: Ids = field(compare=False)


@dataclass(frozen=True)
class Gallery:
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


@dataclass(frozen=True)
class Side:
    """One of before and after: what is kept of each query."""

    ranks: Float64  # [queries], NaN where nothing is the right answer
    best: Ids  # [queries, k]

    def take(self, start: int, ranks: Float64, scores: Array) -> None:
        span = slice(start, start + len(scores))
        self.ranks[span] = ranks
        self.best[span] = topk_ids(scores, self.best.shape[1])


def measure(
    method: Method,
    bank: Array,
    test: Array,
    captions: Captions,
    direction: Direction = Direction.TEXT_TO_VIDEO,
    *,
    second: Array | None = None,
    save: Path | None = None,
    k: int = 10,
) -> Outcome:
    """Normalise `test` by `bank` and compare; `k` is that of the k-occurrences.

    Text to video: rows are captions, columns videos. Video to text: rows are videos, columns captions, and
    captions that are not valid are left out of the gallery. A transductive method is fitted on the valid
    test queries instead of the bank. `second` is the gallery bank of the dual methods. `save` is where the
    corrected scores go, as `.npy`.
    """
    check_shapes(bank, test, captions, direction)
    backwards = direction is Direction.VIDEO_TO_TEXT
    columns = captions.valid if backwards and not captions.valid.all() else None
    source = Gallery(test, columns)
    asks = np.ones(len(test), bool) if backwards else captions.valid
    own = captions.owner[captions.valid] if backwards else captions.owner
    if method.transductive:
        state = method.fit(source.read(s.start, s.stop)[asks[s]] for s, _ in row_blocks(test))
    elif second is None:
        state = method.fit(Gallery(bank, columns))
    else:
        # Sinkhorn compares its second bank with the queries, the others with the gallery.
        state = method.fit(Gallery(bank, columns), Gallery(second, columns if method.streaming else None))
    queries, items = source.shape
    kept = min(k, items)
    before, after = (Side(np.full(queries, np.nan), np.zeros((queries, kept), np.int64)) for _ in range(2))
    corrected = np.zeros(queries, bool)

    def ranks(rows: Array, start: int) -> Float64:
        if backwards:
            return ranks_of_own(rows, own, start)
        return ranks_of_columns(rows, own[start : start + len(rows)])

    def work(start: int, stop: int, out: Array | None) -> None:
        step = max(1, BLOCK // items)
        for at in range(start, stop, step):
            rows = widen(source.read(at, min(at + step, stop)))
            before.take(at, ranks(rows, at), rows)
            found = method.apply(rows, state, threads=1)
            if isinstance(found, GatedScores):
                corrected[at : at + len(rows)] = found.activated
                found = found.ranking_scores
            after.take(at, ranks(found, at), found)
            if out is not None:
                _write(out[at : at + len(rows)], found, columns)

    with new_matrix(save, test.shape, method.score_kind(widen(test[:1]).dtype)) as out:
        each_span(source, lambda start, stop: work(start, stop, out), None)
    counted = asks & ~np.isnan(before.ranks)
    return Outcome(
        figures(before.ranks[counted]),
        figures(after.ranks[counted]),
        measure_hubness(before.best[counted], k, items),
        measure_hubness(after.best[counted], k, items),
        int(counted.sum()),
        items,
        int(corrected[counted].sum()) if method.gated else None,
        k_occurrence(before.best[counted], kept, items),
        k_occurrence(after.best[counted], kept, items),
    )


def check_shapes(bank: Array, test: Array, captions: Captions, direction: Direction) -> None:
    """Refuse matrices that do not belong together."""
    shape = (len(captions), captions.videos)
    wanted = shape if direction is Direction.TEXT_TO_VIDEO else shape[::-1]
    if test.shape != wanted:
        raise HubnessError(f"the test matrix is {list(test.shape)}, but {list(wanted)} is expected")
    if bank.shape[1] != test.shape[1]:
        raise HubnessError(
            f"the bank has {bank.shape[1]} columns but the test matrix has {test.shape[1]}; the columns of "
            "both are the same gallery, and rows are queries"
        )


def with_automatic_beta(method: Method, bank: Array, columns: Bool | None = None) -> Method:
    """The method with a β chosen without labels, from a sample of the bank and those `columns` of it.

    The grid is for cosines; for logits it is divided by the largest similarity.
    """
    if not hasattr(method, "beta"):
        raise HubnessError(f"{method.name!r} has no beta to choose; leave out --beta")
    sample = bank[:: -(-len(bank) // SAMPLE)]
    sample = sample if columns is None else sample[:, columns]
    reach = float(np.abs(sample).max())
    scale = reach if reach > COSINE else 1.0
    choice = choose_beta_unlabelled(
        sample, [beta / scale for beta in GRID], method=None if method.gated else method
    )
    untyped: Any = method
    changed: Method = replace(untyped, beta=choice.beta)
    return changed


def label(method: Method, source: str, size: int, transductive: bool) -> str:
    """What made the figures: `none`, `querybank(source, size, β)` or `transductive`."""
    if method.name == "none":
        return "none"
    if transductive or method.transductive:
        return "transductive"
    beta = asdict(method).get("beta")
    return f"querybank({source}, {size}" + ("" if beta is None else f", {beta:g}") + ")"


@contextmanager
def new_matrix(path: Path | None, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[Array | None]:
    """An `.npy` file to fill, which gets its name when all is well; None where there is no path."""
    if path is None:
        yield None
        return
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        out = np.lib.format.open_memmap(fresh, mode="w+", dtype=kind, shape=shape)
        yield out
        out.flush()
        fresh.replace(path)
    except OSError as error:
        raise HubnessError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        fresh.unlink(missing_ok=True)


def _write(out: Array, scores: Array, columns: Bool | None) -> None:
    if columns is None:
        out[:] = scores
        return
    out[:] = scores.min(axis=1, keepdims=True) - 1  # what is no item stands behind every item
    out[:, columns] = scores
