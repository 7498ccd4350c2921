"""How hubby a retrieval is, from how often each item is retrieved.

    Nₖ(v) = number of queries that have v among their k best items        (k-occurrence)

Items that are never retrieved count, with 0. Definitions as in Feldbauer & Flexer, "A comprehensive empirical
comparison of hubness reduction", 2019, and for skewness QB-Norm (arXiv 2112.12777, supplement, eq. 1). Of
equal similarities the lower item number is retrieved. Cost: one pass over the similarities in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import ArraySource, blocks_of, each_span, matrix
from wordreel.hubness.scores import GatedScores, ranking_scores
from wordreel.index.topk import topk_ids
from wordreel.types import Array, Float64, Int64

BINS = 40
Counts = NDArray[np.int64] | Float64


def k_occurrence(
    retrieved: Array | GatedScores, k: int = 10, items: int | None = None, *, threads: int | None = None
) -> Int64:
    """Count how many queries have each item among their k best.

    Args:
        retrieved: Similarities or scores `[queries, items]`, or a ranking `[queries, at least k]` of item
            numbers, best first (-1: none).
        k: How many items each query retrieves.
        items: The size of the gallery; needed for a ranking.
        threads: CPU threads; all cores by default.

    Returns:
        Nₖ, `[items]`.

    Raises:
        HubnessError: There are no queries, `k` is below 1, or the shapes do not fit.

    >>> k_occurrence(np.array([[0.9, 0.1, 0.5], [0.8, 0.7, 0.1]]), k=1).tolist()
    [2, 0, 0]
    """
    retrieved = ranking_scores(retrieved)
    if k < 1:
        raise HubnessError(f"k must be at least 1, not {k}")
    if isinstance(retrieved, np.ndarray) and retrieved.dtype.kind in "iu":
        return _of_ranking(retrieved, k, items)
    rows = matrix(retrieved, "the similarities", items)
    if len(rows) == 0:
        raise HubnessError("no queries to count over")
    source = ArraySource(rows)

    def work(start: int, stop: int) -> Int64:
        counts = np.zeros(rows.shape[1], np.int64)
        for _, block in blocks_of(source, start, stop):
            best = block.tops if k == 1 else topk_ids(block.values, k).ravel()
            counts += np.bincount(best, minlength=len(counts))
        return counts

    return np.asarray(sum(each_span(source.shape, work, threads)), np.int64)


def _of_ranking(ranking: Array, k: int, items: int | None) -> Int64:
    if items is None:
        raise HubnessError("a ranking needs the number of items; pass items=, or pass similarities")
    if ranking.ndim != 2 or len(ranking) == 0 or ranking.shape[1] < min(k, items):
        raise HubnessError(f"a ranking for k = {k} is [queries, at least {k}], not {ranking.shape}")
    best = ranking[:, :k].astype(np.int64)
    if best.min() < -1 or best.max() >= items:
        raise HubnessError(f"a ranking holds item numbers from 0 to {items - 1}")
    return np.bincount(best[best >= 0], minlength=items)


def skewness(counts: Counts) -> float:
    """Compute E[(N − μ)³] / σ³ with population moments; 0 where all items are retrieved equally often.

    >>> skewness(np.array([0, 0, 0, 4]))
    1.1547005383792515
    """
    apart = np.asarray(counts, np.float64) - np.mean(counts)
    spread = float(np.mean(apart**2))
    return float(np.mean(apart**3)) / spread**1.5 if spread > 0 else 0.0


def robin_hood(counts: Counts) -> float:
    """Compute ½ Σ|N − μ| / ΣN: the share of retrievals to move for all items to be equal."""
    counts = np.asarray(counts, np.float64)
    return _share(0.5 * float(np.abs(counts - counts.mean()).sum()), float(counts.sum()))


def gini(counts: Counts) -> float:
    """Compute Σᵢⱼ|Nᵢ − Nⱼ| / (2 n ΣN), by sorting in O(n log n)."""
    ranked = np.sort(np.asarray(counts, np.float64))
    n = len(ranked)
    return _share(float(((2 * np.arange(n) - n + 1) * ranked).sum()), n * float(ranked.sum()))


def atkinson(counts: Counts, eps: float = 0.5) -> float:
    """Compute 1 − mean(N^(1−ε))^(1/(1−ε)) / μ; for ε = ½ that is 1 − mean(√N)²/μ."""
    if not 0 < eps < 1:
        raise HubnessError(f"eps must lie between 0 and 1, not {eps!r}")
    counts = np.asarray(counts, np.float64)
    mean = float(counts.mean())
    return 1 - float(np.mean(counts ** (1 - eps))) ** (1 / (1 - eps)) / mean if mean > 0 else 0.0


def antihub_occurrence(counts: Counts) -> float:
    """Return the share of items that no query retrieves."""
    return float(np.mean(np.asarray(counts) == 0))


def hub_occurrence(counts: Counts, k: int = 10, hub_size: float = 2.0) -> float:
    """Return the share of all retrievals that go to hubs, items with N ≥ hub_size · k."""
    counts = np.asarray(counts, np.float64)
    return _share(float(counts[counts >= hub_size * k].sum()), float(counts.sum()))


def groupie_ratio(counts: Counts, k: int = 10, queries: int | None = None) -> float:
    """Return the share of retrievals that goes to the largest hub: max N / (queries · k).

    `queries` is ΣN / k unless given.
    """
    total = float(np.sum(counts)) if queries is None else float(queries * k)
    return _share(float(np.max(counts)), total)


@dataclass(frozen=True)
class Hubness:
    """Every measure of one retrieval."""

    k: int
    skewness: float
    robin_hood: float
    gini: float
    atkinson: float
    antihub_occurrence: float
    hub_occurrence: float
    groupie_ratio: float
    largest: int


def measure_hubness(retrieved: Array | GatedScores, k: int = 10, items: int | None = None) -> Hubness:
    """Compute every hubness measure of a retrieval.

    Args:
        retrieved: Similarities or scores `[queries, items]`, or a ranking of item numbers (`k_occurrence`).
        k: How many items each query retrieves.
        items: The size of the gallery; needed for a ranking.

    Returns:
        Skewness, Robin Hood, Gini and Atkinson index, shares of hubs and antihubs, the largest hub.

    Raises:
        HubnessError: The shapes do not fit.

    >>> measure_hubness(np.array([[0.9, 0.1, 0.5], [0.8, 0.7, 0.1]]), k=1).largest
    2
    """
    counts = k_occurrence(retrieved, k, items)
    return Hubness(
        k,
        skewness(counts),
        robin_hood(counts),
        gini(counts),
        atkinson(counts),
        antihub_occurrence(counts),
        hub_occurrence(counts, k),
        groupie_ratio(counts, k),
        int(counts.max()),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def occurrence_edges(largest: int) -> Float64:
    """Return edges of bins of equal whole width; the first holds only 0, what is never retrieved.

    >>> occurrence_edges(3).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    step = max(1, -(-largest // BINS))
    return np.concatenate([[0.0], np.arange(1, max(1, largest) + step + 1, step, dtype=np.float64)])
