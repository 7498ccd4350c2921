"""Training losses over `similarities [n, n]` of captions (rows) and videos (columns), pairs on the diagonal.

`same [n, n]` marks captions and videos that belong together beyond the diagonal: two captions of one video in
a batch are then not each other's negatives. Without it they are, as published.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, huber_loss, l1_loss, mse_loss

from wordreel.lab.training.settings import LossSettings, TeachSettings

Loss = Callable[[Tensor, Tensor | None], Tensor]
Distillation = Callable[[Tensor, Tensor], Tensor]


def build_loss(settings: LossSettings) -> Loss:
    """Return the loss that a recipe names, of similarities and the mask of the same video."""
    if settings.kind == "max-margin":
        return partial(max_margin, margin=settings.margin, diagonal=settings.diagonal)
    if settings.kind == "info-nce":
        return partial(info_nce, temperature=settings.temperature)
    return partial(dual_softmax, temperature=settings.temperature, prior=settings.prior_temperature)


def build_distillation(settings: TeachSettings) -> Distillation:
    """Return the loss that draws similarities `[n, n]` to those of the teachers `[teachers, n, n]`.

    TeachText's (Croitoru et al., 2021, arXiv 2104.08271), Huber with δ = 1 as published:

        L = mean_ij huber_δ(s_ij − mean over teachers of t_ij)
    """
    compare: Distillation = {"l1": l1_loss, "l2": mse_loss}.get(
        settings.kind, partial(huber_loss, delta=settings.delta)
    )
    return lambda similarities, teachers: compare(_wide(similarities), _wide(teachers).detach().mean(dim=0))


def max_margin(
    similarities: Tensor, same: Tensor | None = None, margin: float = 0.2, diagonal: bool = False
) -> Tensor:
    """Return the bidirectional max-margin ranking loss (Karpathy et al., 2014) of MoEE, CE and MMT.

        L = mean over i ≠ j of  [m + s_ij − s_ii]₊  and  [m + s_ji − s_ii]₊

    The papers write sums over 1/B; the released code averages over all terms, and so does this. The first
    MoEE code averages over the diagonal too, whose 2n terms are m each: `diagonal=True`. (CE's printed
    equation (3) has the same direction twice.)
    """
    s = _wide(similarities)
    positive = s.diagonal()
    by_text = (margin + s - positive[:, None]).relu()
    by_video = (margin + s - positive[None, :]).relu()
    eye = torch.eye(len(s), dtype=torch.bool, device=s.device)
    counted = ~eye if same is None else ~eye & ~same
    if diagonal:
        counted = counted | eye
    total = torch.where(counted, by_text + by_video, 0).sum()
    return total / (2 * counted.sum()).clamp(min=1)


def info_nce(similarities: Tensor, same: Tensor | None = None, temperature: float = 0.05) -> Tensor:
    """Return symmetric InfoNCE (van den Oord et al., 2018; both directions as in CLIP, Radford et al., 2021).

    L = −½ mean_i [ log softmax_j(s_ij / τ)_i + log softmax_j(s_ji / τ)_i ]
    """
    logits = _wide(similarities) / temperature
    return _symmetric_cross_entropy(logits, logits, same)


def dual_softmax(
    similarities: Tensor, same: Tensor | None = None, temperature: float = 0.01, prior: float = 1000.0
) -> Tensor:
    """Return the dual softmax loss (CAMoE, Cheng et al., 2021, arXiv 2109.04290).

    Before the usual cross-entropy, similarities are weighted by how much each video prefers a caption among
    those of the batch, and the other way round:

        s' = s ⊙ B softmax_over captions(s / τ'),   L = ½ (CE over rows of s' + CE over columns of s'')

    with s the similarities over a temperature τ, B the batch, and τ' = 1000 as published.
    """
    s = _wide(similarities) / temperature
    weights = s / prior
    if same is not None:
        weights = weights.masked_fill(_off_diagonal(same), -torch.inf)
    by_text = s * weights.softmax(dim=0) * len(s)
    by_video = s * weights.softmax(dim=1) * len(s)
    return _symmetric_cross_entropy(by_text, by_video, same)


def same_video(videos: Tensor) -> Tensor:
    """Return which rows and columns of a batch hold the same video, from the videos' numbers `[n]`."""
    return videos[:, None] == videos[None, :]


def _symmetric_cross_entropy(by_text: Tensor, by_video: Tensor, same: Tensor | None) -> Tensor:
    """Mean cross-entropy of the rows of one matrix and the columns of the other; targets on the diagonal."""
    if same is not None:
        masked = _off_diagonal(same)
        by_text, by_video = (s.masked_fill(masked, -torch.inf) for s in (by_text, by_video))
    target = torch.arange(len(by_text), device=by_text.device)
    return (cross_entropy(by_text, target) + cross_entropy(by_video.T, target)) / 2


def _off_diagonal(same: Tensor) -> Tensor:
    return same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)


def _wide(x: Tensor) -> Tensor:
    """At least float32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
