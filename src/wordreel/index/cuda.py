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

from wordreel.index.base import DerivedArrays, Index, PartedIndex, Rest, availability_groups
from wordreel.index.exact import ExactIndex
from wordreel.index.groups import FullVectors, Group, GroupedIndex, Penalty, Running
from wordreel.types import Bool, Float32
from wordreel.util.lru_cache import LRUCache
from wordreel.util.machine import find_gpu

RESCORED = 1 << 18  # items scored again at once
COPIED = 1 << 26  # numbers copied to the device at once
RESERVED = 4 << 30  # bytes left for scores and for others on the device
WORTH = 256 << 20  # bytes: fewer are scanned here in the time that a copy and torch take to be loaded
TAIL = 0.95  # share of the rows that a copy must hold


def cuda_index(vectors: Float32, available: Bool, device: str = "cuda") -> GroupedIndex:
    """Return the index of `vectors [n, experts, dim]` (zeros where not available), copied to a device."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    groups = []
    for pattern, rows in availability_groups(available):
        full = FullVectors.of(vectors, pattern, rows)
        items = torch.empty(len(full), full.dim, device=device)
        step = max(1, COPIED // max(full.dim, 1))
        for start in range(0, len(full), step):
            part = torch.from_numpy(full.take(slice(start, start + step)))
            items[start : start + len(part)] = part.to(device)
        groups.append(Group(pattern, full, DeviceItems(torch, items)))
    return GroupedIndex("cuda", vectors, available, groups, exact=True)


_current: LRUCache[object, GroupedIndex] = LRUCache(1)
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
            index = cuda_index(vectors, available, device)
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
        self._copies = DerivedArrays[Any](lambda array: [torch.from_numpy(array).to(items.device)], 1)

    def best(self, query: Float32, best: Running, penalty: Penalty | None, floor: float) -> Rest | None:
        (bias,), (allowed,) = (
            self._copies.of(array)
            for array in ((None, None) if penalty is None else (penalty.bias, penalty.allowed))
        )
        places, scores = self.nearest(
            self._torch.from_numpy(query).to(self._items.device), best.k, bias, allowed
        )
        best.take(places.cpu().numpy(), scores.cpu().numpy())
        return None

    def nearest(self, query: Any, k: int, bias: Any = None, allowed: Any = None) -> tuple[Any, Any]:
        """Return places and float64 scores of the at most `k` best items by ⟨q, v⟩ − `bias [n]`.

        Of equal scores the lower place comes first. Only items that are `allowed [n]` count.
        """
        rough = self._items @ query
        if bias is not None:
            rough -= bias
        if allowed is not None:
            rough.masked_fill_(~allowed, -self._torch.inf)
        if k < len(rough):
            floor = rough.topk(k).values[-1] - 2 * self._doubt(query, bias)
            near = ((rough >= floor) & (rough > -self._torch.inf)).nonzero()[:, 0]
        else:
            near = (rough > -self._torch.inf).nonzero()[:, 0]
        return self._rescored(query, near, bias, k)

    def _doubt(self, query: Any, bias: Any) -> Any:
        """Return how far float32 scores may be from the exact ones."""
        unit = (self._items.shape[1] + 2) * 2.0**-23  # twice γ, which also covers the norms' own rounding
        if self._torch.backends.cuda.matmul.allow_tf32:
            unit += 2.0**-9
        doubt = unit * self._longest * query.double().norm()
        return doubt if bias is None or not len(bias) else doubt + 2.0**-23 * bias.abs().amax()

    def _rescored(self, query: Any, places: Any, bias: Any, k: int) -> tuple[Any, Any]:
        """Return the `k` best of some items, given in order, by float64 scores."""
        wide = query.double()
        scores = self._torch.cat([self._items[some].double() @ wide for some in places.split(RESCORED)])
        if bias is not None:
            scores -= bias[places]
        order = scores.sort(descending=True, stable=True)
        return places[order.indices[:k]], order.values[:k]
