"""NetVLAD (Arandjelović et al., 2016) with the ghost clusters of GhostVLAD (Zhong et al., 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wordreel.lab.models.batch import unit
from wordreel.lab.models.layers.norm import BatchNorm


class NetVLAD(nn.Module):
    """Gathers rows `x [b, n, D]` into one vector of D·K numbers.

        a = softmax over K + G clusters of BN(x C);   v_dk = Σₜ a_tk (x_td − V_dk)

    The G ghost clusters take their share of a and are dropped without renormalising. Each cluster's residual
    v_·k is normalised, then all of them together; numbers lie in the order d·K + k.
    """

    def __init__(self, dim: int, clusters: int, ghosts: int = 0) -> None:
        super().__init__()
        self.dim, self.clusters_out = dim, clusters
        scale = dim**-0.5
        self.clusters = nn.Parameter(scale * torch.randn(dim, clusters + ghosts))
        self.centres = nn.Parameter(scale * torch.randn(dim, clusters))
        self.norm = BatchNorm(clusters + ghosts)

    @property
    def out(self) -> int:
        return self.dim * self.clusters_out

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """With a `mask [b, n]` only real rows count; without, every row does, padding too."""
        if mask is not None:
            x = torch.where(mask[:, :, None], x, 0)
        shares = self.norm(x @ self.clusters, mask).softmax(dim=-1)[:, :, : self.clusters_out]
        if mask is not None:
            shares = shares * mask[:, :, None]
        residual = x.transpose(1, 2) @ shares - shares.sum(dim=1)[:, None, :] * self.centres  # [b, D, K]
        return unit(unit(residual.transpose(1, 2)).transpose(1, 2).flatten(1))
