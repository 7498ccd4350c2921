"""Numeric precision of training: float32, or mixed precision by autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class TrainingPrecision:
    """The precision of products in training, and the scaling of gradients that it needs."""

    name: str
    device: str  # "cpu" or "cuda"

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context in which torch computes in the precision."""
        if self.name == "float32":
            return nullcontext()
        return torch.autocast(self.device, dtype=DTYPES[self.name])

    def grad_scaler(self) -> torch.amp.GradScaler:
        """Scales float16 gradients so that they do not underflow; disabled for other precisions."""
        return torch.amp.GradScaler(self.device, enabled=self.name == "float16")
