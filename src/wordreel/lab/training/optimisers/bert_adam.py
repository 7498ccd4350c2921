"""BertAdam, as CLIP4Clip, TS2-Net and many fine-tunings of BERT use it: Adam without bias correction.

    g ← g · min(1, c / ‖g‖) for each parameter,  m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
    p ← p − η (m / (√v + ε) + λ p)

Weight decay joins the update, not the gradient. The learning rate's warm-up takes the place of a bias
correction (see `lr_schedules`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch


class BertAdam(torch.optim.Optimizer):
    """`clip_each` is c, the largest norm of each parameter's gradient; 0 does not clip."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        clip_each: float = 1.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.clip_each = clip_each

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One update of all parameters that have a gradient, without a synchronisation."""
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            for p in params:
                if not self.state[p]:
                    self.state[p] = {"mean": torch.zeros_like(p), "square": torch.zeros_like(p)}
            grads = [p.grad for p in params]
            if self.clip_each:
                norms = torch._foreach_norm(grads)
                factors = [(self.clip_each / (norm + 1e-6)).clamp(max=1.0) for norm in norms]
                grads = list(torch._foreach_mul(grads, factors))
            means = [self.state[p]["mean"] for p in params]
            squares = [self.state[p]["square"] for p in params]
            beta1, beta2 = group["betas"]
            torch._foreach_mul_(means, beta1)
            torch._foreach_add_(means, grads, alpha=1 - beta1)
            torch._foreach_mul_(squares, beta2)
            torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
            scales = torch._foreach_sqrt(squares)
            torch._foreach_add_(scales, group["eps"])
            updates = torch._foreach_div(means, scales)
            if group["weight_decay"]:
                torch._foreach_add_(updates, params, alpha=group["weight_decay"])
            torch._foreach_add_(params, updates, alpha=-group["lr"])
        return None if closure is None else closure()
