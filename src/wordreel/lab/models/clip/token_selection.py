"""TS2-Net's token selection (arXiv 2207.07852): the class token and the k most telling patches.

    h = gelu(W LN(x)),   score = tanh(w gelu(V [h_token; h_class]))

over the projected tokens x of one frame; no layer but the norm has a bias. In training the top k are chosen
by perturbation, so that the scores learn; in evaluation they are chosen plainly, so that the same video
always has the same embedding. The released code perturbs at evaluation too: `noisy`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wordreel.lab.models.clip.perturbed_topk import Gradient, hard_topk, perturbed_topk


class TokenScores(nn.Module):
    """`[n, tokens, dim]` to `[n, tokens]`; the first token is the class token."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        half = dim // 2
        self.in_conv = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, half, bias=False), nn.GELU())
        self.out_conv = nn.Sequential(
            nn.Linear(2 * half, half, bias=False), nn.GELU(), nn.Linear(half, 1, bias=False), nn.Tanh()
        )

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.in_conv(tokens)
        both = torch.cat((hidden, hidden[:, :1].expand_as(hidden)), dim=-1)
        scores: Tensor = self.out_conv(both).squeeze(-1)
        return scores


class TokenSelection(nn.Module):
    """`[n, tokens, dim]` of n frames to `[n, 1 + k, dim]`: the class token, then k (soft) patches."""

    def __init__(
        self,
        dim: int,
        k: int = 3,
        *,
        samples: int = 500,
        sigma: float = 0.05,
        gradient: Gradient = "full",
        noisy: bool = False,
    ) -> None:
        super().__init__()
        self.k, self.samples, self.sigma = k, samples, sigma
        self.gradient, self.noisy = gradient, noisy
        self.score_predictor = TokenScores(dim)

    def forward(self, tokens: Tensor) -> Tensor:
        patches = tokens[:, 1:]
        scores = self.score_predictor(tokens)[:, 1:].float()
        if self.training or self.noisy:
            shape = (len(scores), self.samples, scores.shape[-1])
            noise = torch.randn(shape, dtype=scores.dtype, device=scores.device)
            chosen = perturbed_topk(scores, self.k, self.sigma, noise=noise, gradient=self.gradient)
        else:
            chosen = hard_topk(scores, self.k)
        return torch.cat((tokens[:, :1], chosen.to(patches.dtype) @ patches), dim=1)
