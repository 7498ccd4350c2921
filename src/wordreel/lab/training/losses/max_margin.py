"""The bidirectional max-margin ranking loss (Karpathy et al., 2014) of MoEE, CE and MMT.

    L = mean over i ≠ j of  [m + s_ij − s_ii]₊  and  [m + s_ji − s_ii]₊

with s_ij the similarity of caption i and video j. The papers write sums over 1/B; the released code averages
over all terms, and so does this. The first MoEE code averages over the diagonal too, whose 2n terms are m
each: `diagonal=True`. (CE's printed equation (3) has the same direction twice.)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wordreel.lab.training.losses.masks import negative_mask


class MaxMarginLoss(nn.Module):
    def __init__(self, margin: float = 0.2, diagonal: bool = False) -> None:
        super().__init__()
        self.margin, self.diagonal = margin, diagonal

    def forward(self, similarities: Tensor, same: Tensor | None = None) -> Tensor:
        s = similarities.float() if similarities.dtype != torch.float64 else similarities
        own = s.diagonal()
        by_text = (self.margin + s - own[:, None]).relu()
        by_video = (self.margin + s - own[None, :]).relu()
        counted = negative_mask(len(s), same, s.device)
        if self.diagonal:
            counted = counted | torch.eye(len(s), dtype=torch.bool, device=s.device)
        total = torch.where(counted, by_text + by_video, 0).sum()
        return total / (2 * counted.sum()).clamp(min=1)
