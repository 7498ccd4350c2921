"""The dual softmax loss (CAMoE, Cheng et al., 2021, arXiv 2109.04290).

Before the usual cross-entropy, similarities are weighted by how much each video prefers a caption among those
of the batch, and the other way round:

    s' = s ⊙ B softmax_over captions(s / τ'),     L = ½ (CE over the rows of s' + CE over the columns of s'')

with s the similarities over a temperature τ, B the batch, and τ' = 1000 as published.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wordreel.lab.training.losses.info_nce import symmetric_cross_entropy
from wordreel.lab.training.losses.masks import off_diagonal


class DualSoftmaxLoss(nn.Module):
    def __init__(self, temperature: float = 0.01, prior_temperature: float = 1000.0) -> None:
        super().__init__()
        self.temperature, self.prior_temperature = temperature, prior_temperature

    def forward(self, similarities: Tensor, same: Tensor | None = None) -> Tensor:
        s = similarities.to(torch.promote_types(similarities.dtype, torch.float32)) / self.temperature
        prior = s / self.prior_temperature
        if same is not None:
            prior = prior.masked_fill(off_diagonal(same), -torch.inf)
        by_text = s * prior.softmax(dim=0) * len(s)
        by_video = s * prior.softmax(dim=1) * len(s)
        return symmetric_cross_entropy(by_text, by_video, same)
