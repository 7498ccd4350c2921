"""Image-to-image retrieval by class (CUB, SOP): every item asks for the others of its class.

The item itself is left out. An item that is alone in its class asks nothing, but others can retrieve it.

- R@K: the share of items whose first item of the same class is among the first K (Jégou et al. 2011);
- AP = 1/R Σᵢ [item i is right] · (right among the first i) / i, over all ranks i, where R others are right;
  mAP is its mean;
- mAP@R cuts the sum off after R ranks (Musgrave et al. 2020).

Equal scores: a first item has the mean of the ranks it shares, as in `ranks`; AP is the mean over all orders
of the tied items (McSherry & Najork 2008). With g items above, h of them right, and t tied of which r right,
rank g + i adds r/t · (h + 1 + (i − 1)(r − 1)/(t − 1)) / (g + i), a sum that harmonic numbers give at once.

Cost: similarities are computed or read in blocks of queries. Of a row, only the scores from the last right
item up are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import EvaluationError, NextStep
from wordreel.hubness import Method, product, ranking_scores
from wordreel.retrieval.metrics import recall_at
from wordreel.types import Float64, Int64

BLOCK = 1 << 23  # similarities computed at once: few enough to hold, many enough for a matrix product
KS = (1, 2, 4, 8)  # of CUB
SELF = -1.25  # an item's similarity to itself: below every cosine, and not so large as to look like a logit


@dataclass(frozen=True)
class InstanceMetrics:
    """Figures in per cent over `queries` items that are not alone in their class, among `items`."""

    recall: dict[int, float]
    mean_average_precision: float
    map_at_r: float
    queries: int
    items: int


@dataclass(frozen=True)
class InstanceRanks:
    """`[items]` each; NaN for items that ask nothing."""

    first: Float64  # the rank of the first right item
    average_precision: Float64
    precision_to_r: Float64  # the average precision cut off after R ranks


def embedding_metrics(
    embeddings: NDArray[Any],
    labels: Sequence[Any] | NDArray[Any],
    ks: Sequence[int] = KS,
    method: Method | None = None,
    bank: NDArray[Any] | None = None,
) -> InstanceMetrics:
    """Compute image-to-image retrieval metrics of embeddings, by cosine.

    Args:
        embeddings: `[items, dim]`, of any length.
        labels: `[items]`, the class of each item.
        ks: The K of R@K.
        method: A normalisation of the cosines. A transductive one uses all test items as queries.
        bank: `[bank items, dim]`: embeddings of other items, such as the training split's, as bank queries.

    Returns:
        R@K, mAP and mAP@R in per cent, over the items that are not alone in their class.

    Raises:
        EvaluationError: The shapes do not fit, there are no items, or an embedding is not finite.

    >>> result = embedding_metrics(np.array([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]]), ["a", "a", "b", "b"])
    >>> result.recall[1], result.mean_average_precision
    (100.0, 100.0)
    """
    return instance_metrics(embedding_ranks(embeddings, labels, method, bank), ks)


def instance_metrics(items: InstanceRanks, ks: Sequence[int] = KS) -> InstanceMetrics:
    """Average over the items that ask."""
    return InstanceMetrics(
        recall={k: recall_at(items.first, k) for k in ks},
        mean_average_precision=100 * float(np.nanmean(items.average_precision)),
        map_at_r=100 * float(np.nanmean(items.precision_to_r)),
        queries=int(np.count_nonzero(~np.isnan(items.first))),
        items=len(items.first),
    )


def embedding_ranks(
    embeddings: NDArray[Any],
    labels: Sequence[Any] | NDArray[Any],
    method: Method | None = None,
    bank: NDArray[Any] | None = None,
) -> InstanceRanks:
    """Return each item's ranks by cosine, normalised by `method` where there is one.

    Products are computed in float32, or float64 where that is given.
    """
    vectors = _unit(embeddings, "embedding")
    items = len(vectors)

    def rows_of(span: slice) -> NDArray[Any]:
        rows: NDArray[Any] = vectors[span] @ vectors.T
        # An item does not retrieve itself: no gate opens by it, and no statistic counts it.
        rows[np.arange(len(rows)), np.arange(span.start, span.stop)] = SELF
        return rows

    if method is None or method.name == "none":
        return item_ranks(rows_of, items, labels)
    if method.transductive:
        state = method.fit(rows_of(span) for span in _spans(items))
    elif bank is None:
        raise EvaluationError(f"{method.name} needs a bank of other items", NextStep("give one with --bank"))
    else:
        others = _unit(bank, "bank embedding").astype(vectors.dtype)
        if others.shape[1] != vectors.shape[1]:
            raise EvaluationError(
                f"the bank's embeddings have {others.shape[1]} dimensions, the items' {vectors.shape[1]}"
            )
        state = method.fit(product(others, vectors))
    return item_ranks(lambda span: ranking_scores(method.apply(rows_of(span), state)), items, labels)


def _unit(embeddings: NDArray[Any], what: str) -> NDArray[Any]:
    """Embeddings of length 1; one of length 0 is as far from all."""
    vectors = np.asarray(embeddings)
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise EvaluationError(f"embeddings are a matrix [items, dim] of numbers, not {vectors.shape}")
    vectors = vectors.astype(np.float64 if vectors.dtype == np.float64 else np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        item = int(np.flatnonzero(~np.isfinite(lengths))[0])
        raise EvaluationError(f"{what} {item} is not finite; leave it out or mend it")
    vectors /= np.where(lengths > 0, lengths, 1)
    return vectors


def item_ranks(
    rows_of: Callable[[slice], NDArray[Any]], items: int, labels: Sequence[Any] | NDArray[Any]
) -> InstanceRanks:
    """Rank each item's matches.

    `rows_of(span)` gives similarities `[span, items]`, whose diagonal is ignored.
    """
    named = np.asarray(labels)
    if named.shape != (items,):
        raise EvaluationError(f"{items} items need as many labels, not {named.shape}")
    if items == 0:
        raise EvaluationError("there are no items; nothing can be measured")
    label = np.unique(named, return_inverse=True)[1]
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(label.max() + 2))
    members = [order[a:b] for a, b in pairwise(starts.tolist())]
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, items + 1))])
    ranks = np.full((3, items), np.nan)
    for span in _spans(items):
        rows = rows_of(span)
        finite = np.isfinite(rows)
        finite[np.arange(len(rows)), np.arange(span.start, span.stop)] = True
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise EvaluationError(f"the similarity of items {span.start + row} and {column} is not finite")
        for item, row in zip(range(span.start, span.stop), rows, strict=True):
            mates = members[label[item]]
            if len(mates) > 1:
                ranks[:, item] = _figures(row, item, mates, harmonic)
    return InstanceRanks(*ranks)


def _figures(row: NDArray[Any], item: int, mates: Int64, harmonic: Float64) -> tuple[float, float, float]:
    """First rank, average precision, and that cut off after R, of one item."""
    right = np.zeros(len(row), bool)
    right[mates] = True
    reach = row >= row[mates[mates != item]].min()  # what ranks below every right item does not matter
    reach[item] = False
    _, group, tied = np.unique(-row[reach], return_inverse=True, return_counts=True)  # best scores first
    alike = np.bincount(group, right[reach], len(tied)).astype(np.int64)
    above, before, total = tied.cumsum() - tied, alike.cumsum() - alike, int(alike.sum())
    grows = np.where(tied > 1, (alike - 1) / np.maximum(tied - 1, 1), 0)
    rest = before + 1 - grows * (above + 1)

    def summed(count: Int64) -> float:
        parts = alike / tied * (grows * count + rest * (harmonic[above + count] - harmonic[above]))
        return float(parts.sum()) / total

    first = int((alike > 0).argmax())
    rank = 1 + above[first] + (tied[first] - 1) / 2
    return float(rank), summed(tied), summed(np.clip(total - above, 0, tied))


def _spans(items: int) -> Iterator[slice]:
    step = max(1, BLOCK // items)
    for start in range(0, items, step):
        yield slice(start, min(start + step, items))
