"""The statistics of `accumulate` on a torch device: updated block by block, returned as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from wordreel.hubness.activation_set import ActivationSet
from wordreel.hubness.column_mean import ColumnMean
from wordreel.hubness.log_sum_exp import LogSumExp
from wordreel.hubness.statistic import Statistic
from wordreel.hubness.top_k import TopK
from wordreel.types import Array

Key = tuple[Any, ...]  # a statistic and its parameters (`StatisticBuilder.key`)


class _LogSumExp:
    def __init__(self, beta: float) -> None:
        self.beta, self.shift, self.total = beta, None, None

    def update(self, torch: Any, block: Any) -> None:
        top = block.amax(0).double()
        shift: Any = top if self.shift is None else torch.maximum(self.shift, top)
        kind = torch.float64 if self.beta < 0.1 else torch.float32
        new = ((block - shift.float()).to(kind) * self.beta).exp_().sum(0, dtype=torch.float64)
        old: Any = 0 if self.shift is None else self.total * ((self.shift - shift) * self.beta).exp()
        self.shift, self.total = shift, old + new

    def build(self, size: int) -> Statistic:
        shift, total = to_numpy(self.shift), to_numpy(self.total)
        return LogSumExp(self.beta, size, shift, total)


class _ActivationSet:
    def __init__(self, k: int) -> None:
        self.k, self.items = k, 0
        self.blocks: list[tuple[Any, Any]] = []

    def update(self, torch: Any, block: Any) -> None:
        self.items = block.shape[1]
        if self.k == 1:
            best = block.amax(1, keepdim=True)
            numbers = torch.arange(self.items, device=block.device)
            # argmax does not promise the first of equals on a GPU.
            ids = torch.where(block == best, numbers, self.items - 1).amin(1, keepdim=True)
        else:
            best, ids = block.sort(dim=1, descending=True, stable=True)
            best, ids = best[:, : self.k].clone(), ids[:, : self.k].clone()
        self.blocks.append((ids, best))

    def build(self, size: int) -> Statistic:
        ids, scores = (np.concatenate([to_numpy(pair[i]) for pair in self.blocks]) for i in (0, 1))
        missing = ((0, 0), (0, self.k - ids.shape[1]))
        ids = np.pad(ids.astype(np.int32), missing, constant_values=-1)
        return ActivationSet(self.k, self.items, ids, np.pad(scores, missing, constant_values=-np.inf))


class _TopK:
    def __init__(self, k: int) -> None:
        self.k = k
        self.top: Any = None

    def update(self, torch: Any, block: Any) -> None:
        every: Any = block.T if self.top is None else torch.cat([self.top, block.T], dim=1)
        self.top = every.topk(min(self.k, every.shape[1]), dim=1).values

    def build(self, size: int) -> Statistic:
        values = to_numpy(self.top)
        missing = ((0, 0), (0, self.k - values.shape[1]))
        return TopK(self.k, size, np.pad(values, missing, constant_values=-np.inf))


class _ColumnMean:
    def __init__(self) -> None:
        self.total: Any = 0

    def update(self, torch: Any, block: Any) -> None:
        self.total = self.total + block.sum(0, dtype=torch.float64)

    def build(self, size: int) -> Statistic:
        return ColumnMean(size, to_numpy(self.total))


BUILDERS = {"logsum": _LogSumExp, "winners": _ActivationSet, "best": _TopK, "mean": _ColumnMean}


def builder_of(key: Key) -> Any:
    """A builder with `update(torch, block)` and `build(size)`."""
    name, *numbers = key
    return BUILDERS[name](*numbers)


def to_numpy(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy())
