"""From frame embeddings to one vector of a video, the parameter-free head of CLIP4Clip, and to cosines."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def cosines(texts: Tensor, videos: Tensor) -> Tensor:
    """`[q, b]` of unit vectors, in float32 under autocast too: a logit of 30 has steps of 1/8 in bfloat16."""
    with torch.autocast(texts.device.type, enabled=False):
        return texts.float() @ videos.float().T


def mean_pool(frames: Tensor, mask: Tensor) -> Tensor:
    """Unit vectors `[b, dim]`: the mean of the real frames at unit length, at unit length again.

    `frames [b, n, dim]`, `mask [b, n]` bool. A video without a real frame is a zero vector.
    """
    real = mask[:, :, None].to(frames.dtype)
    mean = (normalize(frames, dim=-1) * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return normalize(mean, dim=-1)
