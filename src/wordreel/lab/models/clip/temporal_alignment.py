"""CLIP2Video's temporal alignment block (arXiv 2106.11097): tokens gathered around shared centres.

Video and text tokens x_t meet in K centres E_k with assignment weights W, in the manner of NetVLAD:

    a_tk = softmax_k(x_t · W_k),   v_k = Σ_t a_tk (x_t − E_k),   v = unit(mean_k unit(v_k))

over real tokens. The same centres serve both sides, so that a centre comes to stand for one kind of content.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import normalize


def align_tokens(tokens: Tensor, mask: Tensor, weights: Tensor, centres: Tensor) -> Tensor:
    """`tokens [n, t, dim]`, `mask [n, t]`, `weights` and `centres` `[k, dim]` to unit vectors `[n, dim]`.

    One product instead of n × t × k × dim differences: Σ_t a_tk (x_t − E_k) = Σ_t a_tk x_t − (Σ_t a_tk) E_k.
    """
    shares = (tokens @ weights.T).softmax(dim=-1) * mask[:, :, None]
    gathered = shares.transpose(1, 2) @ tokens - shares.sum(dim=1)[:, :, None] * centres
    return normalize(normalize(gathered, dim=-1).mean(dim=1), dim=-1)
