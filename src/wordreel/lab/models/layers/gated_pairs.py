"""Collaborative gating as the multi-modal transformer's authors compared against it ("COLL", table 3a).

    Tᵢ = f(Σⱼ≠ᵢ aᵢ aⱼ g([xᵢ; xⱼ]) / Σⱼ aᵢ aⱼ),   g, f: linear, dropout, ReLU, linear;   then the gates of CE

All experts at once. A third layer of f and four batch norms are carried, as published, and not used.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wordreel.lab.models.batch import unit
from wordreel.lab.models.layers.collaborative_gating import TINY
from wordreel.lab.models.layers.gating import Gates
from wordreel.lab.models.layers.norm import BatchNorm, ExpertNorm


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
