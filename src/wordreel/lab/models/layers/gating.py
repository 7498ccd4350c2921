"""Gated embedding units (Miech et al., 2018), one by one or for all experts at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from wordreel.lab.models.batch import unit
from wordreel.lab.models.layers.norm import BatchNorm, ExpertNorm


class ContextGating(nn.Module):
    """y = x ⊙ σ(BN(W x + b))"""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.norm = BatchNorm(dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        gate: Tensor = self.norm(self.fc(x), mask)
        return x * gate.sigmoid()


class GatedEmbedding(nn.Module):
    """x → unit(ContextGating(W x + b))"""

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.fc = nn.Linear(dim, out)
        self.gate = ContextGating(out)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y: Tensor = self.gate(self.fc(x), mask)
        return unit(y)


class Gates(nn.Module):
    """One d×d linear map and batch norm per expert: `[b, m, d]` to `[b, m, d]`, as one batched product."""

    def __init__(self, many: int, dim: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(dim)  # as nn.Linear begins
        self.weight = nn.Parameter(torch.empty(many, dim, dim).uniform_(-bound, bound))  # [m, out, in]
        self.bias = nn.Parameter(torch.empty(many, dim).uniform_(-bound, bound))
        self.norms = ExpertNorm(many, dim)

    def linear(self, x: Tensor) -> Tensor:
        return torch.einsum("bmi,moi->bmo", x, self.weight) + self.bias

    def forward(self, x: Tensor, available: Tensor | None = None) -> Tensor:
        """x ⊙ σ(BN(W x + b)), each expert with its own W, b and BN."""
        gate: Tensor = self.norms(self.linear(x), available)
        return x * gate.sigmoid()


class GatedEmbeddings(nn.Module):
    """A gated embedding unit per expert on the same input, all of one size: `[q, i]` to `[q, m, d]`."""

    def __init__(self, dim: int, many: int, out: int) -> None:
        super().__init__()
        self.many = many
        self.fc = nn.Linear(dim, many * out)  # one product instead of m
        self.gates = Gates(many, out)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.gates(self.fc(x).unflatten(-1, (self.many, -1)))
        return unit(y)


class UnevenEmbeddings(nn.Module):
    """A gated embedding unit per expert, each of its own size, filled up with zeros to the largest."""

    def __init__(self, dims: Sequence[int], outs: Sequence[int]) -> None:
        super().__init__()
        self.width = max(outs)
        self.units = nn.ModuleList(GatedEmbedding(i, o) for i, o in zip(dims, outs, strict=True))

    def forward(self, inputs: Sequence[Tensor], available: Tensor | None = None) -> Tensor:
        rows = []
        for number, (layer, x) in enumerate(zip(self.units, inputs, strict=True)):
            y = layer(x, None if available is None else available[:, number])
            rows.append(pad(y, (0, self.width - y.shape[-1])))
        return torch.stack(rows, dim=1)
