"""Which pairs of a batch are negatives."""

from __future__ import annotations

import torch
from torch import Tensor


def same_video(videos: Tensor) -> Tensor:
    """`[n, n]`: whether two places of a batch hold the same video, from the videos' numbers `[n]`."""
    return videos[:, None] == videos[None, :]


def negatives(count: int, same: Tensor | None, device: torch.device) -> Tensor:
    """`[n, n]` bool: every other video, or every other video that is not the same."""
    others = ~torch.eye(count, dtype=torch.bool, device=device)
    return others if same is None else others & ~same
