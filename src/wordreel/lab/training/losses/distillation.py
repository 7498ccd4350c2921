"""TeachText's distillation (Croitoru et al., 2021, arXiv 2104.08271): match the teachers' similarities.

    L = mean_ij huber_δ(s_ij − mean over teachers of t_ij)

Huber with δ = 1 as published; "l1" and "l2" are the absolute and the squared difference. "kl" compares
softmax distributions instead (Hinton et al., 2015), with t the mean over teachers:

    L = ½ mean_i [ KL(softmax_j(t_ij / τ) ‖ softmax_j(s_ij / τ)) + the same over columns ]

without other captions of the same video.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import huber_loss, kl_div, l1_loss, log_softmax, mse_loss

from wordreel.lab.training.losses.info_nce import MASKED_LOGIT
from wordreel.lab.training.losses.masks import off_diagonal


class DistillationLoss(nn.Module):
    def __init__(
        self,
        kind: Literal["huber", "l1", "l2", "kl"] = "huber",
        delta: float = 1.0,
        temperature: float = 0.1,
    ) -> None:
        super().__init__()
        self.kind, self.delta, self.temperature = kind, delta, temperature

    def forward(self, similarities: Tensor, teachers: Tensor, same: Tensor | None = None) -> Tensor:
        """`similarities [n, n]`, `teachers [t, n, n]`, and which captions share a video `[n, n]`."""
        wide = torch.promote_types(similarities.dtype, torch.float32)
        teacher = teachers.detach().to(wide).mean(dim=0)
        if self.kind == "kl":
            return self._divergence(similarities.to(wide), teacher, same)
        if self.kind == "l1":
            return l1_loss(similarities.to(wide), teacher)
        if self.kind == "l2":
            return mse_loss(similarities.to(wide), teacher)
        return huber_loss(similarities.to(wide), teacher, delta=self.delta)

    def _divergence(self, similarities: Tensor, teacher: Tensor, same: Tensor | None) -> Tensor:
        student, target = similarities / self.temperature, teacher / self.temperature
        if same is not None:
            masked = off_diagonal(same)
            student, target = (x.masked_fill(masked, MASKED_LOGIT) for x in (student, target))
        both = [
            kl_div(log_softmax(x, 1), log_softmax(y, 1), log_target=True, reduction="batchmean")
            for x, y in ((student, target), (student.T, target.T))
        ]
        return (both[0] + both[1]) / 2
