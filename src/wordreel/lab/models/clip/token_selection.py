"""TS2-Net's token selection (arXiv 2207.07852): the class token and the k most telling patches.

    h = gelu(W LN(x)),   score = tanh(w gelu(V [h_token; h_class]))

over the projected tokens x of one frame; no layer but the norm has a bias. In training the top k are chosen
by perturbation, so that the scores learn; in evaluation they are chosen plainly, so that the same video
always has the same embedding. The released code perturbs at evaluation too: `noisy`.

Differentiable top-k by perturbation (Cordonnier et al., 2021, arXiv 2104.03059; Berthet et al., 2020).

With scores x, noise z ~ N(0, 1) and Y(x) the k × d one-hot rows of the k largest scores, by ascending index:

    I = E[Y(x + σ z)],        ∂I / ∂x = E[Y(x + σ z) ⊗ z] / σ

both as the mean over samples of z. The gradient of ⟨g, I⟩ is therefore E[(⟨g, Y⟩ − b) z] / σ for any b; b is
the samples' mean of ⟨g, Y⟩, which lowers the variance. The released code of TS2-Net keeps only the terms in
which score and indicator have the same index:

    (∂⟨g, I⟩ / ∂x)_d ≈ Σ_k g_kd E[Y_kd z_d] / σ                                          ("diagonal")
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

Gradient = Literal["full", "diagonal"]


def hard_topk(scores: Tensor, k: int) -> Tensor:
    """Turn scores `[n, d]` into indicators `[n, k, d]`.

    They are one-hot rows by ascending index; of equal scores the first win.
    """
    chosen = scores.argsort(dim=-1, descending=True, stable=True)[:, :k].sort(dim=-1).values
    return torch.nn.functional.one_hot(chosen, scores.shape[-1]).to(scores.dtype)


def perturbed_topk(
    scores: Tensor, k: int, sigma: float = 0.05, *, noise: Tensor, gradient: Gradient = "full"
) -> Tensor:
    """Return the mean indicators `[n, k, d]` of `scores [n, d]` under `noise [n, samples, d]`."""
    indicators: Tensor = PerturbedTopK.apply(scores, noise, k, sigma, gradient)  # type: ignore[no-untyped-call]
    return indicators


class PerturbedTopK(torch.autograd.Function):
    """Counts instead of one-hot rows: no tensor has samples × k × d numbers."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, noise: Tensor, k: int, sigma: float, gradient: Gradient) -> Tensor:
        perturbed = torch.addcmul(scores[:, None], noise, noise.new_tensor(sigma))
        # [n, k, samples]
        chosen = perturbed.topk(k, dim=-1, sorted=False).indices.sort(dim=-1).values.transpose(1, 2)
        ctx.save_for_backward(noise, chosen)
        ctx.sigma, ctx.gradient, ctx.shape = sigma, gradient, (len(scores), k, scores.shape[-1])
        ones = scores.new_ones(()).expand(chosen.shape)
        return scores.new_zeros(ctx.shape).scatter_add_(2, chosen, ones) / noise.shape[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        noise, chosen = ctx.saved_tensors
        (grad,) = grads
        samples = noise.shape[1]
        if ctx.gradient == "full":
            product = grad.gather(2, chosen).sum(dim=1)  # ⟨g, Y⟩ of each sample
            product = product - product.mean(dim=1, keepdim=True)
            total = (product[:, None] @ noise)[:, 0]
        else:
            at = noise.gather(2, chosen.transpose(1, 2)).transpose(1, 2)
            total = (grad * grad.new_zeros(ctx.shape).scatter_add_(2, chosen, at)).sum(dim=1)
        return total / (samples * ctx.sigma), None, None, None, None


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
