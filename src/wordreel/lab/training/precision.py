"""Numeric precision of training: float32, or mixed precision by autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class TrainingPrecision:
    name: str
    device: str  # "cpu" or "cuda"

    def autocast(self) -> AbstractContextManager[Any]:
        if self.name == "float32":
            return nullcontext()
        return torch.autocast(self.device, dtype=DTYPES[self.name])

    def grad_scaler(self) -> torch.amp.GradScaler:
        """Scales float16 gradients so that they do not underflow; disabled for other precisions."""
        return torch.amp.GradScaler(self.device, enabled=self.name == "float16")


def backward_and_step(
    loss: Tensor, optimiser: torch.optim.Optimizer, scaler: torch.amp.GradScaler, clip: float
) -> None:
    """Gradients of a loss, cut to the norm `clip` unless that is 0, and one step of the optimiser."""
    scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
    if clip:
        scaler.unscale_(optimiser)
        nn.utils.clip_grad_norm_([p for group in optimiser.param_groups for p in group["params"]], clip)
    scaler.step(optimiser)
    scaler.update()
