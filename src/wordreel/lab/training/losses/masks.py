"""Masks over the pairs of a batch, `[n, n]` bool."""

from __future__ import annotations

import torch
from torch import Tensor


def same_video(videos: Tensor) -> Tensor:
    """Which rows and columns of a batch hold the same video, from the videos' indices `[n]`."""
    return videos[:, None] == videos[None, :]


def off_diagonal(same: Tensor) -> Tensor:
    """Pairs of the same video beyond each pair itself."""
    return same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)


def negative_mask(count: int, same: Tensor | None, device: torch.device) -> Tensor:
    """Negatives: all pairs off the diagonal, without those of the same video if `same` is given."""
    others = ~torch.eye(count, dtype=torch.bool, device=device)
    return others if same is None else others & ~same
