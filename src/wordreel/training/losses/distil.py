"""TeachText's distillation (Croitoru et al., 2021, arXiv 2104.08271): similarities like the teachers'.

    L = mean_ij huber_δ(s_ij − mean over teachers of t_ij)

Huber with δ = 1 as published; "l1" and "l2" are the absolute and the squared difference.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import huber_loss, l1_loss, mse_loss


class Distil(nn.Module):
    def __init__(self, kind: Literal["huber", "l1", "l2"] = "huber", delta: float = 1.0) -> None:
        super().__init__()
        self.kind, self.delta = kind, delta

    def forward(self, similarities: Tensor, teachers: Tensor) -> Tensor:
        """`similarities [n, n]` and `teachers [t, n, n]`."""
        wide = torch.promote_types(similarities.dtype, torch.float32)
        taught = teachers.detach().to(wide).mean(dim=0)
        if self.kind == "l1":
            return l1_loss(similarities.to(wide), taught)
        if self.kind == "l2":
            return mse_loss(similarities.to(wide), taught)
        return huber_loss(similarities.to(wide), taught, delta=self.delta)
