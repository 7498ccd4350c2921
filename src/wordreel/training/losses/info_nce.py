"""Symmetric InfoNCE (van den Oord et al., 2018; both ways as in CLIP, Radford et al., 2021).

L = −½ mean_i [ log softmax_j(s_ij / τ)_i + log softmax_j(s_ji / τ)_i ]
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

MOST = math.log(100.0)  # as published: 1/τ stays below 100 while it is learned


class InfoNCE(nn.Module):
    """With `learned` the temperature is a parameter that begins at τ."""

    def __init__(self, temperature: float = 0.05, learned: bool = False) -> None:
        super().__init__()
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
        return (self.log_scale.clamp(max=MOST) if self.learned else self.log_scale).exp()

    def forward(self, similarities: Tensor, same: Tensor | None = None) -> Tensor:
        logits = similarities.to(torch.promote_types(similarities.dtype, torch.float32)) * self.scale
        return both_ways(logits, logits, same)


def both_ways(by_text: Tensor, by_video: Tensor, same: Tensor | None) -> Tensor:
    """Mean cross-entropy of the rows of one matrix and the columns of the other, right on the diagonal."""
    if same is not None:
        hidden = same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)
        by_text, by_video = (s.masked_fill(hidden, -torch.inf) for s in (by_text, by_video))
    right = torch.arange(len(by_text), device=by_text.device)
    return (cross_entropy(by_text, right) + cross_entropy(by_video.T, right)) / 2
