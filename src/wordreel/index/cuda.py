"""Exact search on a GPU, for galleries that fit into its memory. torch is an optional extra.

Items of one pattern of available experts lie on the device as one float32 matrix, in blocks of 64. A search

1. computes the largest score of each block: one pass over the matrix, in float32;
2. scores the items of the `k + EXTRA` best blocks again, in float64;
3. is done for a query if its k-th score is above the largest score of any other block by more than float32
   may have been wrong, |fl(⟨q, v⟩) − ⟨q, v⟩| ≤ γ_d ‖q‖ ‖v‖ with γ_d ≈ d · 2⁻²⁴; otherwise takes four times
   as many blocks.

So the result is the exact one: the best items by the inner products of the float32 vectors, not by rounded
ones. Cost: one query reads the matrix once; a batch costs one matrix product, whose result is reduced block
by block and never stored whole.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.index import cuda_kernels
from wordreel.index.base import Best, Index, PartedIndex, availability_groups, group_queries, merge_best
from wordreel.index.exact import ExactIndex, FullVectorIndex
from wordreel.types import Bool, Float32, Int64
from wordreel.util.gpu import find_gpu
from wordreel.util.lru_cache import LRUCache

BLOCK = 64  # items
EXTRA = 6  # blocks scored again beyond k
AT_ONCE = 1 << 26  # scores of a batch that are in memory at the same time
MAXIMA = 1 << 28  # largest scores of blocks that are in memory at the same time
GATHERED = 1 << 27  # numbers gathered at once to be scored again
COPIED = 1 << 26  # numbers copied to the device at once
RESERVED = 4 << 30  # bytes left for scores and for others on the device
WORTH = 256 << 20  # bytes: fewer are scanned here in the time that a copy and torch take to be loaded
TAIL = 0.95  # share of the rows that a copy must hold
PENALTIES = 8  # corrections and filters that stay on the device


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
            items = _copy(torch, flat, rows, columns, device)
            self._groups.append((pattern, rows, columns, DeviceItems(torch, items, len(rows))))
        # The arrays are kept with their copies, so that no other array can have the same id.
        self._penalties: LRUCache[tuple[int, int], tuple[object, object, list[Any]]] = LRUCache(PENALTIES)

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
        penalties = self._penalty(torch, allowed, bias)
        for (pattern, rows, columns, items), penalty in zip(self._groups, penalties, strict=True):
            queries = torch.from_numpy(group_queries(vectors, weights, pattern)[:, columns])
            places, scores = items.best(queries.to(self._device), k, penalty)
            places, scores = places.cpu().numpy(), scores.float().cpu().numpy()
            filled = rows[np.minimum(places, len(rows) - 1)]  # past the end are places of the filled block
            found.append(Best(np.where(np.isneginf(scores), -1, filled), scores))
        return merge_best(found, k)

    def _penalty(self, torch: Any, allowed: Bool | None, bias: Float32 | None) -> list[Any]:
        """For each group the bias of its items on the device, infinite for those not allowed."""
        if allowed is None and bias is None:
            return [None] * len(self._groups)
        key = (id(allowed), id(bias))
        known = self._penalties.get(key)
        if known is None:
            whole = np.zeros(len(self), np.float32) if bias is None else bias
            whole = whole if allowed is None else np.where(allowed, whole, np.float32(np.inf))
            parts = [torch.from_numpy(whole[rows]).to(self._device) for _, rows, _, _ in self._groups]
            known = (allowed, bias, parts)
            self._penalties.put(key, known)
        return known[2]


_held: LRUCache[object, CudaIndex] = LRUCache(1)
_copying = threading.Lock()


def gpu_index(key: object, vectors: Float32, available: Bool) -> Index | None:
    """An exact index on the GPU; None where there is none, the vectors do not fit, or are too few to matter.

    The copy stays there: the same `key` with more rows has the rest scanned, until it is worth a new copy.
    """
    if vectors.nbytes < WORTH or (device := find_gpu()) is None:
        return None
    with _copying:
        index = _held.get(key)
        if index is None or not TAIL * len(vectors) <= len(index) <= len(vectors):
            if not fits_gpu(vectors, device):
                return None
            index = CudaIndex(vectors, available, device)
            _held.put(key, index)
    if len(index) == len(vectors):
        return index
    return PartedIndex([index, ExactIndex(vectors[len(index) :], available[len(index) :])])


def fits_gpu(vectors: Float32, device: str) -> bool:
    """Whether a copy of the vectors fits into the free memory of the device."""
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return bool(vectors.nbytes + RESERVED <= free)


@dataclass(frozen=True, eq=False)
class _Penalty:
    """What is subtracted from the scores of the items, and the largest finite one of them, as tensors."""

    values: Any  # [n]
    largest: Any

    @classmethod
    def of(cls, torch: Any, values: Any) -> _Penalty:
        finite = torch.where(torch.isinf(values), 0.0, values)
        return cls(values, finite.abs().amax())


class DeviceItems:
    """`items [n, dim]`, a float32 tensor on any device, searched by inner product."""

    def __init__(self, torch: Any, items: Any, count: int | None = None) -> None:
        """`count` where the last rows only fill up the last block, as rows of zeros."""
        self._torch = torch
        self._count = len(items) if count is None else count
        short = -len(items) % BLOCK
        self._items = torch.nn.functional.pad(items, (0, 0, 0, short)) if short else items
        norms = [part.norm(dim=1).max() for part in self._items.split(1 << 20)]
        self._longest = float(torch.stack(norms).max()) if norms else 0.0
        # A tensor is held with what is made of it, so that no other can have the same id.
        self._penalties: LRUCache[int, tuple[Any, _Penalty]] = LRUCache(PENALTIES)
        self._padding = None
        if len(self._items) > self._count:
            self._padding = self._padded(torch.zeros(self._count, device=items.device))

    def best(self, queries: Any, k: int, penalty: Any = None) -> tuple[Any, Any]:
        """Places `[q, k]` and float64 scores of the best items by ⟨q, v⟩ − `penalty [n]`, −inf past the end.

        Of equal scores the lower place comes first.
        """
        torch = self._torch
        whole = self._padding if penalty is None else self._padded(penalty)
        places = torch.zeros(len(queries), k, dtype=torch.long, device=queries.device)
        scores = torch.full((len(queries), k), -torch.inf, dtype=torch.float64, device=queries.device)
        step = max(1, MAXIMA // max(len(self._items) // BLOCK, 1))
        for start in range(0, len(queries) if k else 0, step):
            some = slice(start, start + step)
            self._fill(queries[some], k, whole, places[some], scores[some])
        return places, scores

    def _padded(self, penalty: Any) -> _Penalty:
        """A penalty as long as the items, infinite past their end; the same for the same tensor."""
        known = self._penalties.get(id(penalty))
        if known is None:
            values = penalty
            if short := len(self._items) - len(penalty):
                values = self._torch.nn.functional.pad(penalty, (0, short), value=self._torch.inf)
            known = penalty, _Penalty.of(self._torch, values)
            self._penalties.put(id(penalty), known)
        return known[1]

    def _fill(self, queries: Any, k: int, whole: _Penalty | None, places: Any, scores: Any) -> None:
        torch = self._torch
        penalty = None if whole is None else whole.values
        maxima = self._maxima(queries, penalty)
        blocks = maxima.shape[1]
        doubt = self._doubt(queries, whole)
        waiting = torch.arange(len(queries), device=queries.device)
        wanted = k + EXTRA
        while len(waiting):
            taken = min(wanted, blocks)
            top = maxima[waiting].topk(min(taken + 1, blocks), dim=1)
            found, values = self._rescore(queries[waiting], top.indices[:, :taken], k, penalty)
            width = values.shape[1]
            places[waiting, :width], scores[waiting, :width] = found, values
            if taken == blocks:
                return
            rest = top.values[:, taken] + doubt[waiting]
            last = values[:, -1] if width == k else torch.full_like(rest, -torch.inf)
            waiting = waiting[(rest >= last) & ~torch.isneginf(rest)]
            wanted *= 4

    def _maxima(self, queries: Any, penalty: Any) -> Any:
        """`[q, blocks]`: the largest float32 score of each block of items."""
        torch, items = self._torch, self._items
        blocks = len(items) // BLOCK
        maxima = torch.empty(len(queries), blocks, device=items.device)
        if len(queries) == 1 and cuda_kernels.fill_maxima(
            items, queries[0].contiguous(), penalty, maxima[0], BLOCK
        ):
            return maxima
        step = max(1, AT_ONCE // len(queries) // BLOCK)
        for start in range(0, blocks, step):
            rows = slice(start * BLOCK, min(start + step, blocks) * BLOCK)
            scores = (items[rows] @ queries[0])[None] if len(queries) == 1 else queries @ items[rows].T
            if penalty is not None:
                scores -= penalty[rows]
            torch.amax(
                scores.view(len(queries), -1, BLOCK), dim=2, out=maxima[:, start : min(start + step, blocks)]
            )
        return maxima

    def _doubt(self, queries: Any, whole: _Penalty | None) -> Any:
        """`[q]`: how far a float32 score may be from the exact one."""
        unit = (self._items.shape[1] + 2) * 2.0**-23  # twice γ, which also covers the norms' own rounding
        if self._torch.backends.cuda.matmul.allow_tf32:
            unit += 2.0**-9
        doubt = unit * self._longest * queries.double().norm(dim=1)
        return doubt if whole is None else doubt + 2.0**-23 * whole.largest

    def _rescore(self, queries: Any, blocks: Any, k: int, penalty: Any) -> tuple[Any, Any]:
        """The `k` best of the items of some blocks `[q, b]`, in float64."""
        torch, items = self._torch, self._items
        rows = blocks.sort(dim=1).values[:, :, None] * BLOCK + torch.arange(BLOCK, device=items.device)
        rows = rows.flatten(1)
        scores = torch.empty(rows.shape, dtype=torch.float64, device=items.device)
        step = max(1, GATHERED // max(rows.shape[1] * items.shape[1], 1))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            near = items[rows[some]].double()
            scores[some] = (near @ queries[some, :, None].double())[:, :, 0]
        if penalty is not None:
            scores -= penalty[rows]
        order = scores.sort(dim=1, descending=True, stable=True)
        return rows.gather(1, order.indices[:, :k]), order.values[:, :k]


def _copy(torch: Any, flat: Float32, rows: Int64, columns: Int64, device: str) -> Any:
    """Some rows and columns of a matrix in main memory or a file, on the device, filled up to a block."""
    items = torch.zeros(-(-len(rows) // BLOCK) * BLOCK, len(columns), device=device)
    step = max(1, COPIED // max(flat.shape[1], 1))
    whole = len(columns) == flat.shape[1]
    for start in range(0, len(rows), step):
        some = flat[rows[start : start + step]]
        part = np.ascontiguousarray(some if whole else some[:, columns])
        items[start : start + len(part)] = torch.from_numpy(part).to(device)
    return items
