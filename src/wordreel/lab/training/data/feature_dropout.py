"""Hide rows and experts of a training batch at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wordreel.lab.models.batch import ExpertFeatures


@dataclass(frozen=True)
class FeatureDropout:
    """Chances that a training batch hides a single row, all of an expert but those of `spares`, or all
    experts but those of `alone`."""

    tokens: float = 0.0
    experts: float = 0.0
    spares: tuple[str, ...] = ()
    alone_chance: float = 0.0
    alone: tuple[str, ...] = ()


def drop_tokens(features: ExpertFeatures, chance: float) -> ExpertFeatures:
    """Each row hidden with this chance; where all of a video's would be, none is."""
    stays = features.mask & (torch.rand(features.mask.shape, device=features.mask.device) >= chance)
    return features._replace(mask=torch.where(stays.any(dim=1, keepdim=True), stays, features.mask))


def drop_experts(
    batch: dict[str, ExpertFeatures], chance: float, spared: Tensor
) -> dict[str, ExpertFeatures]:
    """Each expert but the `spared [experts]` missing from each video with this chance.

    A video keeps at least one of the experts it had.
    """
    names = list(batch)
    had = torch.stack([batch[name].available for name in names], dim=1)  # [b, experts]
    keys = torch.rand(had.shape, device=had.device)
    stays = had & ((keys >= chance) | spared)
    best = keys.masked_fill(~had, -1.0).argmax(dim=1, keepdim=True)
    stays = stays | (torch.zeros_like(had).scatter(1, best, True) & had & ~stays.any(dim=1, keepdim=True))
    return _masked(batch, stays)


def show_alone(batch: dict[str, ExpertFeatures], chance: float, alone: Tensor) -> dict[str, ExpertFeatures]:
    """With this chance only the experts `alone [experts]`, for videos that have one of them."""
    had = torch.stack([part.available for part in batch.values()], dim=1)  # [b, experts]
    chosen = (torch.rand(len(had), 1, device=had.device) < chance) & (had & alone).any(dim=1, keepdim=True)
    return _masked(batch, ~chosen | alone)


def _masked(batch: dict[str, ExpertFeatures], stays: Tensor) -> dict[str, ExpertFeatures]:
    """Only the experts that stay, `stays [b, experts]`."""
    return {
        name: part._replace(mask=part.mask & stays[:, number, None])
        for number, (name, part) in enumerate(batch.items())
    }
