"""Exact search on a GPU, for galleries that fit into its memory. torch is an optional extra.

Items of one pattern of available experts lie on the device as one float32 matrix. A search multiplies it with
the queries in float32, and scores again in float64 every item that may be among the k best: those whose score
is below the k-th best by no more than float32 may have been wrong for both, |fl(⟨q, v⟩) − ⟨q, v⟩| ≤ γ_d ‖q‖
‖v‖ with γ_d ≈ d · 2⁻²⁴. So the result is the exact one: the best items by the inner products of the float32
vectors, not by rounded ones. Cost: one matrix product, and the selection of k from every row of it.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from wordreel.index.base import (
    Best,
    DerivedArrays,
    Index,
    PartedIndex,
    availability_groups,
    group_queries,
    merge_best,
)
from wordreel.index.exact import ExactIndex, FullVectorIndex
from wordreel.types import Bool, Float32, Int64
from wordreel.util.gpu import find_gpu
from wordreel.util.lru_cache import LRUCache

SCORES = 1 << 28  # scores of a batch that are in memory at the same time
RESCORED = 1 << 18  # items scored again at once
COPIED = 1 << 26  # numbers copied to the device at once
RESERVED = 4 << 30  # bytes left for scores and for others on the device
WORTH = 256 << 20  # bytes: fewer are scanned here in the time that a copy and torch take to be loaded
TAIL = 0.95  # share of the rows that a copy must hold


class CudaIndex(FullVectorIndex):
    """Items `vectors [n, experts, dim]` (zeros where not available), copied to a device."""

    name = "cuda"

    def __init__(self, vectors: Float32, available: Bool, device: str = "cuda") -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]

        super().__init__(vectors, available)
        self._device = device
        flat = vectors.reshape(len(vectors), vectors.shape[1] * vectors.shape[2])
        self._groups: list[tuple[Bool, Int64, Any, DeviceItems]] = []
        for pattern, rows in availability_groups(available):
            columns = np.flatnonzero(np.repeat(pattern, vectors.shape[2]))
            items = DeviceItems(torch, _copy(torch, flat, rows, columns, device))
            self._groups.append((pattern, rows, columns, items))

        def on_device(whole: Any) -> list[Any]:
            return [torch.from_numpy(whole[rows]).to(device) for _, rows, _, _ in self._groups]

        self._derived = DerivedArrays[Any](on_device, len(self._groups))

    @property
    def exact(self) -> bool:
        return True

    def best(
        self,
        vectors: Float32,
        weights: Float32,
        k: int,
        allowed: Bool | None = None,
        bias: Float32 | None = None,
    ) -> Best:
        import torch

        found = [Best(np.zeros((len(vectors), 0), np.int64), np.zeros((len(vectors), 0), np.float32))]
        parts = zip(self._groups, self._derived.of(allowed), self._derived.of(bias), strict=True)
        for (pattern, rows, columns, items), mine, own in parts:
            queries = torch.from_numpy(group_queries(vectors, weights, pattern)[:, columns])
            places, scores = items.best(queries.to(self._device), k, own, mine)
            places, scores = places.cpu().numpy(), scores.float().cpu().numpy()
            found.append(Best(np.where(places < 0, -1, rows[places]), scores))
        return merge_best(found, k)


_current: LRUCache[object, CudaIndex] = LRUCache(1)
_copying = threading.Lock()


def gpu_index(key: object, vectors: Float32, available: Bool) -> Index | None:
    """Return an exact index on the GPU; None where there is none, or vectors do not fit or are too few.

    The copy stays there: the same `key` with more rows has the rest scanned, until it is worth a new copy.
    """
    if vectors.nbytes < WORTH or (device := find_gpu()) is None:
        return None
    with _copying:
        index = _current.get(key)
        if index is None or not TAIL * len(vectors) <= len(index) <= len(vectors):
            if not fits_gpu(vectors, device):
                return None
            index = CudaIndex(vectors, available, device)
            _current.put(key, index)
    if len(index) == len(vectors):
        return index
    return PartedIndex([index, ExactIndex(vectors[len(index) :], available[len(index) :])])


def fits_gpu(vectors: Float32, device: str) -> bool:
    """Return whether a copy of the vectors fits into the free memory of the device."""
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return bool(vectors.nbytes + RESERVED <= free)


class DeviceItems:
    """`items [n, dim]`, a float32 tensor on any device, searched by inner product."""

    def __init__(self, torch: Any, items: Any) -> None:
        self._torch, self._items = torch, items
        norms = [part.norm(dim=1).max() for part in items.split(1 << 20) if len(part)]
        self._longest = float(torch.stack(norms).max()) if norms else 0.0

    def best(self, queries: Any, k: int, bias: Any = None, allowed: Any = None) -> tuple[Any, Any]:
        """Return places `[q, k]` and float64 scores of the best items by ⟨q, v⟩ − `bias [n]`.

        Of equal scores the lower place comes first; past the end places are -1 and scores −inf. Only items
        that are `allowed [n]` count.
        """
        torch, items = self._torch, self._items
        places = torch.full((len(queries), k), -1, dtype=torch.long, device=queries.device)
        scores = torch.full((len(queries), k), -torch.inf, dtype=torch.float64, device=queries.device)
        width = min(k, len(items))
        doubt = self._doubt(queries, bias)
        step = max(1, SCORES // max(1, len(items)))
        for start in range(0, len(queries) if width else 0, step):
            rough = queries[start : start + step] @ items.T
            if bias is not None:
                rough -= bias
            if allowed is not None:
                rough.masked_fill_(~allowed, -torch.inf)
            floor = rough.topk(width, dim=1).values[:, -1] - 2 * doubt[start : start + step]
            near = (rough >= floor[:, None]) & (rough > -torch.inf)
            for row, chosen in enumerate(near, start):
                found, values = self._rescored(queries[row], chosen.nonzero()[:, 0], bias, k)
                places[row, : len(found)], scores[row, : len(found)] = found, values
        return places, scores

    def _doubt(self, queries: Any, bias: Any) -> Any:
        """Return how far float32 scores may be from the exact ones, `[q]`."""
        unit = (self._items.shape[1] + 2) * 2.0**-23  # twice γ, which also covers the norms' own rounding
        if self._torch.backends.cuda.matmul.allow_tf32:
            unit += 2.0**-9
        doubt = unit * self._longest * queries.double().norm(dim=1)
        return doubt if bias is None or not len(bias) else doubt + 2.0**-23 * bias.abs().amax()

    def _rescored(self, query: Any, places: Any, bias: Any, k: int) -> tuple[Any, Any]:
        """Return the `k` best of some items, given in order, by float64 scores."""
        wide = query.double()
        scores = self._torch.cat([self._items[some].double() @ wide for some in places.split(RESCORED)])
        if bias is not None:
            scores -= bias[places]
        order = scores.sort(descending=True, stable=True)
        return places[order.indices[:k]], order.values[:k]


def _copy(torch: Any, flat: Float32, rows: Int64, columns: Int64, device: str) -> Any:
    """Return some rows and columns of a matrix in main memory or a file, on the device."""
    items = torch.empty(len(rows), len(columns), device=device)
    step = max(1, COPIED // max(flat.shape[1], 1))
    whole = len(columns) == flat.shape[1]
    for start in range(0, len(rows), step):
        some = flat[rows[start : start + step]]
        part = np.ascontiguousarray(some if whole else some[:, columns])
        items[start : start + len(part)] = torch.from_numpy(part).to(device)
    return items
