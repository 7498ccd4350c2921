"""Rectified Adam (Liu et al., 2019, arXiv 1908.03265) with decoupled weight decay.

    m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²,   p ← p − λ w p
    ρ = 2/(1 − β₂) − 1,   ρ_t = ρ − 2 t β₂ᵗ / (1 − β₂ᵗ)
    ρ_t large enough:  p ← p − λ r_t √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + ε),
                       r_t² = (ρ_t − 4)(ρ_t − 2) ρ / ((ρ − 4)(ρ − 2) ρ_t)
    otherwise:         p ← p − λ / (1 − β₁ᵗ) · m

"Large enough" is ρ_t ≥ 5, and ρ_t > 5 inside Ranger; with β₂ = 0.999 the first five steps are not adapted.
`prepare` writes a step's scalars to a small tensor, so that `apply` can be part of a CUDA graph once
`rule_is_final`: no later step switches between the two rules.

On a GPU a step is bound by memory. The adapted rule is Adam's with a learning rate of λ r_t … and bias
corrections of 1, so Adam's fused kernel computes it in one pass over the weights instead of nine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

MIN_LENGTH = 5.0  # of ρ_t
LATE_STEP = 1_000_000_000  # so late that βᵗ is 0


class RAdam(torch.optim.Optimizer):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        strict: bool = False,
        fused: bool | None = None,
    ) -> None:
        """`fused` updates in one pass over the weights; by default on a GPU only."""
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.steps, self.strict, self.fused = 0, strict, fused
        self._scalars: dict[int, Tensor] = {}
        self._adapted: dict[int, bool] = {}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step. Closures are not supported."""
        self.prepare()
        self.apply()
        self.finish()

    @torch.no_grad()
    def prepare(self) -> None:
        """Compute on the host what depends on the step and the learning rate."""
        self.steps += 1
        for number, group in enumerate(self.param_groups):
            size, self._adapted[number] = step_size(self.steps, group["lr"], group["betas"], self.strict)
            shrink = 1 - group["lr"] * group["weight_decay"]
            values = torch.tensor([size, shrink], dtype=torch.float32)
            device = group["params"][0].device
            if number not in self._scalars or self._scalars[number].device != device:
                self._scalars[number] = values.to(device)
            else:
                self._scalars[number].copy_(values, non_blocking=True)

    @torch.no_grad()
    def apply(self) -> None:
        """Update the weights on the device, without a synchronisation."""
        for number, group in enumerate(self.param_groups):
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            size, shrink = self._scalars[number].unbind()
            beta1, beta2 = group["betas"]
            grads = [p.grad for p in params if p.grad is not None]
            means = [self._state_tensor(p, "mean") for p in params]
            squares = [self._state_tensor(p, "square") for p in params]
            if group["weight_decay"]:
                torch._foreach_mul_(params, shrink)
            fused = params[0].is_cuda if self.fused is None else self.fused
            if fused and self._adapted[number]:
                _fused_update(params, grads, means, squares, size, group)
                continue
            torch._foreach_lerp_(means, grads, 1 - beta1)
            torch._foreach_mul_(squares, beta2)
            torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
            if self._adapted[number]:
                bottom = torch._foreach_sqrt(squares)
                torch._foreach_add_(bottom, group["eps"])
                change = torch._foreach_div(means, bottom)
                torch._foreach_mul_(change, size)
            else:
                change = torch._foreach_mul(means, size)
            torch._foreach_sub_(params, change)

    @property
    def rule_is_final(self) -> bool:
        """Whether all later steps follow the rule of the next one."""
        return all(
            step_size(self.steps + 1, 1.0, group["betas"], self.strict)[1]
            or step_size(LATE_STEP, 1.0, group["betas"], self.strict)[1] is False
            for group in self.param_groups
        )

    def finish(self) -> None:
        """Called after each step, outside the CUDA graph."""

    def _state_tensor(self, p: Tensor, name: str) -> Tensor:
        state = self.state[p]
        if name not in state:
            state[name] = torch.zeros_like(p)
        tensor: Tensor = state[name]
        return tensor


def _fused_update(
    params: list[Tensor],
    grads: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    size: Tensor,
    group: dict[str, Any],
) -> None:
    """The adapted rule by Adam's kernel, at a step so late that it applies no bias correction."""
    beta1, beta2 = group["betas"]
    late = torch.full((), float(LATE_STEP), device=params[0].device)
    torch._fused_adam_(
        params,
        grads,
        means,
        squares,
        [],
        [late] * len(params),
        lr=size,
        beta1=beta1,
        beta2=beta2,
        weight_decay=0.0,
        eps=group["eps"],
        amsgrad=False,
        maximize=False,
    )


def step_size(step: int, lr: float, betas: tuple[float, float], strict: bool = False) -> tuple[float, bool]:
    """The factor of m (over √v + ε if adapted) in step 1, 2, …, and whether the step is adapted.

    >>> step_size(5, 0.1, (0.9, 0.999))[1], step_size(6, 0.1, (0.9, 0.999))[1]
    (False, True)
    """
    beta1, beta2 = betas
    longest = 2 / (1 - beta2) - 1
    power = beta2**step
    length = longest - 2 * step * power / (1 - power)
    bias = 1 - beta1**step
    if length < MIN_LENGTH or (strict and length == MIN_LENGTH):
        return lr / bias, False
    rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return lr * math.sqrt(rectified * (1 - power)) / bias, True
