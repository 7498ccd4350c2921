"""An exponential moving average of a module's weights, which generalises better than the last ones.

average ← w · average + (1 − w) · weights,   w = min(decay, (1 + step) / (10 + step))
"""

from __future__ import annotations

import copy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


class Averaged(nn.Module, Generic[Module]):
    """The module that is trained, and the average of its weights and running statistics."""

    trained: Module
    average: Module

    def __init__(self, module: Module, decay: float) -> None:
        super().__init__()
        self.trained, self.decay = module, decay
        self.average = copy.deepcopy(module).requires_grad_(False).eval()

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move the average after step 0, 1, … of the run."""
        decay = min(self.decay, (1 + step) / (10 + step))
        ours, theirs = self.average.state_dict(), self.trained.state_dict()
        floats = [name for name, value in ours.items() if value.is_floating_point()]
        averages: list[Tensor] = [ours[name] for name in floats]
        torch._foreach_lerp_(averages, [theirs[name] for name in floats], 1 - decay)
        for name in ours.keys() - floats:  # counters
            ours[name].copy_(theirs[name])
