"""Gates: gated embedding units (Miech et al., 2018), and the collaborative gating of experts.

**Collaborative gating.** Every expert's projection is filtered by what the others see.

Collaborative Experts (arXiv 1907.13487), equations (1) and (2), fused with the gated embedding that follows
as its parameter counts and released code have it:

    Tᵢ = h(Σⱼ aᵢ aⱼ g([xᵢ; xⱼ]) [/ Σⱼ aᵢ aⱼ]),      yᵢ = unit(xᵢ ⊙ σ(BN¹ᵢ(Tᵢ) + BN²ᵢ(Wᵢ xᵢ + bᵢ)))

g is linear(2d → d) and then batch norm, activation, linear for each further layer, shared by all pairs. The
released code divides by the number of pairs, counts j = i, and updates x in place, so that its result
depends on the experts' order; the paper's reading here sums over j ≠ i and gates all experts at once.

**Gated pairs.** Collaborative gating as MMT's authors compared against it ("COLL", table 3a).

    Tᵢ = f(Σⱼ≠ᵢ aᵢ aⱼ g([xᵢ; xⱼ]) / Σⱼ aᵢ aⱼ),   g, f: linear, dropout, ReLU, linear;   then the gates of CE

All experts at once. A third layer of f and four batch norms are carried, as published, and not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from wordreel.lab.models.batch import unit
from wordreel.lab.models.layers.norm import BatchNorm, ExpertNorm


class ContextGating(nn.Module):
    """Gate a vector by itself: y = x ⊙ σ(BN(W x + b))."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.norm = BatchNorm(dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        gate: Tensor = self.norm(self.fc(x), mask)
        return x * gate.sigmoid()


class GatedEmbedding(nn.Module):
    """Embed and gate: x → unit(ContextGating(W x + b))."""

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
        """Return x ⊙ σ(BN(W x + b)), each expert with its own W, b and BN."""
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


TINY = 1e-11


class Steps(nn.Module):
    """[batch norm, activation, linear] × n; no step at all is the identity."""

    def __init__(self, dim: int, count: int, mish: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(BatchNorm(dim) for _ in range(count))
        self.linears = nn.ModuleList(nn.Linear(dim, dim) for _ in range(count))
        self.activation = nn.Mish() if mish else nn.ReLU()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for norm, linear in zip(self.norms, self.linears, strict=True):
            x = linear(self.activation(norm(x, mask)))
        return x

    def each(self, x: Tensor) -> Tensor:
        """Compute `x [b, k, d]` as k separate calls (only batch norm in training can tell)."""
        for norm, linear in zip(self.norms, self.linears, strict=True):
            assert isinstance(norm, BatchNorm)  # noqa: S101 - for the type checker
            x = linear(self.activation(norm.each(x)))
        return x


class CollaborativeGating(nn.Module):
    """`x [b, m, d]` and `available [b, m]` to gated unit vectors `[b, m, d]`."""

    def __init__(
        self,
        many: int,
        dim: int,
        *,
        g_layers: int = 3,
        h_layers: int = 0,
        mish: bool = True,
        sequential: bool = False,
        with_self: bool = False,
        pairs: Literal["sum", "mean"] = "sum",
        masked_norm: bool = True,
    ) -> None:
        super().__init__()
        self.first = nn.Linear(2 * dim, dim)
        self.g = Steps(dim, g_layers - 1, mish)
        self.h = Steps(dim, h_layers, mish)
        self.gates = Gates(many, dim)
        self.attention_norms = ExpertNorm(many, dim)
        self.sequential, self.with_self, self.mean = sequential, with_self, pairs == "mean"
        self.masked_norm = masked_norm

    def forward(self, x: Tensor, available: Tensor) -> Tensor:
        return self._gate_sequentially(x, available) if self.sequential else self._gate_at_once(x, available)

    def _gate_at_once(self, x: Tensor, available: Tensor) -> Tensor:
        many, dim = x.shape[1], x.shape[2]
        both = available[:, :, None] & available[:, None, :]  # [b, m, m]
        if not self.with_self:
            both = both & ~torch.eye(many, dtype=torch.bool, device=x.device)
        # W [xᵢ; xⱼ] = W₁ xᵢ + W₂ xⱼ: 2m products instead of m².
        own = x @ self.first.weight[:, :dim].T + self.first.bias
        other = x @ self.first.weight[:, dim:].T
        seen = self.g(own[:, :, None] + other[:, None], both if self.masked_norm else None)
        attention = self._combine(seen, both)
        counted = available if self.masked_norm else None
        attention = self.h(attention, counted)
        gate = self.attention_norms(attention, counted) + self.gates.norms(self.gates.linear(x), counted)
        return unit(x * gate.sigmoid())

    def _gate_sequentially(self, x: Tensor, available: Tensor) -> Tensor:
        now = list(x.unbind(dim=1))
        for i in range(len(now)):
            others = list(range(len(now))) if self.with_self else [j for j in range(len(now)) if j != i]
            pairs = torch.stack([torch.cat((now[i], now[j]), dim=1) for j in others], dim=1)  # [b, k, 2d]
            both = torch.stack([available[:, i] & available[:, j] for j in others], dim=1)
            attention = self.h(self._combine(self.g.each(self.first(pairs)), both))
            plain = now[i] @ self.gates.weight[i].T + self.gates.bias[i]
            gate = self.attention_norms.one(i, attention) + self.gates.norms.one(i, plain)
            now[i] = unit(now[i] * gate.sigmoid())
        return torch.stack(now, dim=1)

    def _combine(self, seen: Tensor, both: Tensor) -> Tensor:
        """Σⱼ over the second dimension from the last, or the mean over available pairs."""
        total = torch.where(both[..., None], seen, 0).sum(dim=-2)
        return total / (both.sum(dim=-1, keepdim=True) + TINY) if self.mean else total


class GatedPairs(nn.Module):
    """`x [b, m, d]` and `available [b, m]` to unit vectors `[b, m, d]`."""

    def __init__(self, many: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.g1, self.g2 = nn.Linear(2 * dim, dim), nn.Linear(dim, dim)
        self.f1, self.f2 = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.gates = Gates(many, dim)
        self.attention_norms = ExpertNorm(many, dim)
        self.dropout = nn.Dropout(dropout)
        self.unused = nn.ModuleList([nn.Linear(dim, dim), *(BatchNorm(dim) for _ in range(4))])
        self.unused.requires_grad_(False)

    def forward(self, x: Tensor, available: Tensor) -> Tensor:
        many, dim = x.shape[1], x.shape[2]
        both = available[:, :, None] & available[:, None, :]
        both = both & ~torch.eye(many, dtype=torch.bool, device=x.device)
        own = x @ self.g1.weight[:, :dim].T + self.g1.bias
        other = x @ self.g1.weight[:, dim:].T
        seen = self.g2(self.dropout(own[:, :, None] + other[:, None]).relu())
        mean = torch.where(both[..., None], seen, 0).sum(dim=2) / (both.sum(dim=2, keepdim=True) + TINY)
        attention = self.f2(self.dropout(self.f1(mean)).relu())
        gate = self.attention_norms(attention) + self.gates.norms(self.gates.linear(x))
        return unit(x * gate.sigmoid())
