"""Ranger (Wright, 2019): RAdam with Lookahead (Zhang et al., 2019, arXiv 1907.08610).

    every k steps:  slow ← slow + α (p − slow),   p ← slow

The slow weights are initialised to the weights before the first step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from wordreel.lab.training.optimisers.radam import RAdam


class Ranger(RAdam):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.95, 0.999),
        eps: float = 1e-5,
        weight_decay: float = 0.0,
        k: int = 6,
        alpha: float = 0.5,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, strict=True)
        self.k, self.alpha = k, alpha

    @torch.no_grad()
    def prepare(self) -> None:
        if self.steps == 0:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.requires_grad and "slow" not in self.state[p]:
                        self.state[p]["slow"] = p.detach().clone()
        super().prepare()

    @torch.no_grad()
    def finish(self) -> None:
        if self.steps % self.k:
            return
        for group in self.param_groups:
            updated = [p for p in group["params"] if "slow" in self.state[p]]
            if updated:
                slow = [self.state[p]["slow"] for p in updated]
                torch._foreach_lerp_(slow, updated, self.alpha)
                torch._foreach_copy_(updated, slow)
