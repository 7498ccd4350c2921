"""Collaborative gating: every expert's projection is filtered by what the others see.

Collaborative Experts (arXiv 1907.13487), equations (1) and (2), fused with the gated embedding that follows
as its parameter counts and released code have it:

    Tᵢ = h(Σⱼ aᵢ aⱼ g([xᵢ; xⱼ]) [/ Σⱼ aᵢ aⱼ]),      yᵢ = unit(xᵢ ⊙ σ(BN¹ᵢ(Tᵢ) + BN²ᵢ(Wᵢ xᵢ + bᵢ)))

g is linear(2d → d) and then batch norm, activation, linear for each further layer, shared by all pairs. The
released code divides by the number of pairs, counts j = i, and updates x in place, so that its result
depends on the experts' order; the paper's reading here sums over j ≠ i and gates all experts at once.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from wordreel.lab.models.batch import unit
from wordreel.lab.models.layers.gating import Gates
from wordreel.lab.models.layers.norm import BatchNorm, ExpertNorm

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
        """`x [b, k, d]` as k separate calls (only batch norm in training can tell)."""
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
