"""Symmetric InfoNCE (van den Oord et al., 2018; in both directions as in CLIP, Radford et al., 2021).

    L = −½ mean_i Σ_j p_ij [ log softmax_j(s_ij / τ) + log softmax_j(s_ji / τ) ]

with p_ij = 1 for i = j and 0 otherwise. Many captions of a batch mean nearly the same; soft targets give them
a share α of the target, by the cosines c of a frozen sentence encoder:

    p_ij = (1 − α) [i = j] + α softmax_j(c_ij / τ')
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax

from wordreel.lab.training.losses.masks import off_diagonal

MASKED_LOGIT = -1e4  # its softmax is 0 in float32, and times a target of 0 it is 0, not NaN
MAX_LOG_SCALE = math.log(100.0)  # as published: a learned 1/τ stays below 100


class InfoNCELoss(nn.Module):
    """With `learned` the temperature is a parameter initialised to τ; `soft` is α, `soft_temperature` τ'."""

    def __init__(
        self,
        temperature: float = 0.05,
        learned: bool = False,
        soft: float = 0.0,
        soft_temperature: float = 0.1,
    ) -> None:
        super().__init__()
        self.soft, self.soft_temperature = soft, soft_temperature
        start = torch.tensor(-math.log(temperature))
        self.log_scale: Tensor
        if learned:
            self.log_scale = nn.Parameter(start)
        else:
            self.register_buffer("log_scale", start, persistent=False)
        self.learned = learned

    @property
    def scale(self) -> Tensor:
        """1/τ"""
        return (self.log_scale.clamp(max=MAX_LOG_SCALE) if self.learned else self.log_scale).exp()

    def forward(
        self, similarities: Tensor, same: Tensor | None = None, captions: Tensor | None = None
    ) -> Tensor:
        """`captions [n, n]` are the cosines of the batch's captions, which soft targets need."""
        logits = similarities.to(torch.promote_types(similarities.dtype, torch.float32)) * self.scale
        if not self.soft or captions is None:
            return symmetric_cross_entropy(logits, logits, same)
        diagonal = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
        cosines = captions.to(logits.dtype) / self.soft_temperature
        if same is not None:
            logits, cosines = (x.masked_fill(off_diagonal(same), MASKED_LOGIT) for x in (logits, cosines))
        target = (1 - self.soft) * diagonal + self.soft * cosines.softmax(dim=1)
        by_text, by_video = log_softmax(logits, dim=1), log_softmax(logits.T, dim=1)
        return -(target * (by_text + by_video)).sum(dim=1).mean() / 2


def symmetric_cross_entropy(by_text: Tensor, by_video: Tensor, same: Tensor | None) -> Tensor:
    """Mean cross-entropy of the rows of one matrix and the columns of the other; targets on the diagonal."""
    if same is not None:
        masked = off_diagonal(same)
        by_text, by_video = (s.masked_fill(masked, -torch.inf) for s in (by_text, by_video))
    target = torch.arange(len(by_text), device=by_text.device)
    return (cross_entropy(by_text, target) + cross_entropy(by_video.T, target)) / 2
