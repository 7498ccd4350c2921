"""In which numbers a model is run: float32, or half precision where it is safe (autocast)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Precision:
    name: str
    device: str  # "cpu" or "cuda"

    def cast(self) -> AbstractContextManager[Any]:
        if self.name == "float32":
            return nullcontext()
        return torch.autocast(self.device, dtype=DTYPES[self.name])

    def scaler(self) -> torch.amp.GradScaler:
        """Float16 gradients are scaled so that they do not vanish; for all others this does nothing."""
        return torch.amp.GradScaler(self.device, enabled=self.name == "float16")
