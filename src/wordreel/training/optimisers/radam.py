"""Rectified Adam (Liu et al., 2019, arXiv 1908.03265) with decoupled weight decay.

    m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²,   p ← p − λ w p
    ρ = 2/(1 − β₂) − 1,   ρ_t = ρ − 2 t β₂ᵗ / (1 − β₂ᵗ)
    ρ_t large enough:  p ← p − λ r_t √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + ε),
                       r_t² = (ρ_t − 4)(ρ_t − 2) ρ / ((ρ − 4)(ρ − 2) ρ_t)
    otherwise:         p ← p − λ / (1 − β₁ᵗ) · m

"Large enough" is ρ_t ≥ 5, and ρ_t > 5 inside Ranger; with β₂ = 0.999 the first five steps are not adapted.
The step's numbers are written to a small tensor beforehand (`prepare`), so that `apply` can be part of a
captured graph once it is `settled` which of the two rules holds.

On a GPU a step costs what it reads and writes. Its adapted rule is Adam's with a learning rate of λ r_t … and
corrections 1 − βᵗ of 1, so Adam's kernel takes it, which goes over the weights once where the rule written
out goes over them nine times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

LEAST = 5.0
ENDLESS = 1_000_000_000  # a step so late that βᵗ is 0


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
        """`fused`: once over the weights; on a GPU unless told otherwise."""
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.steps, self.strict, self.fused = 0, strict, fused
        self._numbers: dict[int, Tensor] = {}
        self._adapted: dict[int, bool] = {}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step; closures are not for this optimiser."""
        self.prepare()
        self.apply()
        self.finish()

    @torch.no_grad()
    def prepare(self) -> None:
        """What depends on the number of the step and on the learning rate, on the host."""
        self.steps += 1
        for number, group in enumerate(self.param_groups):
            size, self._adapted[number] = step_size(self.steps, group["lr"], group["betas"], self.strict)
            shrink = 1 - group["lr"] * group["weight_decay"]
            values = torch.tensor([size, shrink], dtype=torch.float32)
            device = group["params"][0].device
            if number not in self._numbers or self._numbers[number].device != device:
                self._numbers[number] = values.to(device)
            else:
                self._numbers[number].copy_(values, non_blocking=True)

    @torch.no_grad()
    def apply(self) -> None:
        """The step itself, on the device, without a look at any number."""
        for number, group in enumerate(self.param_groups):
            held = [p for p in group["params"] if p.grad is not None]
            if not held:
                continue
            size, shrink = self._numbers[number].unbind()
            beta1, beta2 = group["betas"]
            grads = [p.grad for p in held if p.grad is not None]
            means = [self._kept(p, "mean") for p in held]
            squares = [self._kept(p, "square") for p in held]
            if group["weight_decay"]:
                torch._foreach_mul_(held, shrink)
            fused = held[0].is_cuda if self.fused is None else self.fused
            if fused and self._adapted[number]:
                _once_over(held, grads, means, squares, size, group)
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
            torch._foreach_sub_(held, change)

    @property
    def settled(self) -> bool:
        """Whether all further steps follow the rule of the next one."""
        return all(
            step_size(self.steps + 1, 1.0, group["betas"], self.strict)[1]
            or step_size(ENDLESS, 1.0, group["betas"], self.strict)[1] is False
            for group in self.param_groups
        )

    def finish(self) -> None:
        """What follows a step outside of a captured graph."""

    def _kept(self, p: Tensor, name: str) -> Tensor:
        state = self.state[p]
        if name not in state:
            state[name] = torch.zeros_like(p)
        kept: Tensor = state[name]
        return kept


def _once_over(
    held: list[Tensor],
    grads: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    size: Tensor,
    group: dict[str, Any],
) -> None:
    """The adapted rule by Adam's kernel, told that so many steps are done that nothing is to be corrected."""
    beta1, beta2 = group["betas"]
    late = torch.full((), float(ENDLESS), device=held[0].device)
    torch._fused_adam_(
        held,
        grads,
        means,
        squares,
        [],
        [late] * len(held),
        lr=size,
        beta1=beta1,
        beta2=beta2,
        weight_decay=0.0,
        eps=group["eps"],
        amsgrad=False,
        maximize=False,
    )


def step_size(step: int, rate: float, betas: tuple[float, float], strict: bool = False) -> tuple[float, bool]:
    """What m (over √v + ε, if adapted) is multiplied with in step 1, 2, …

    >>> step_size(5, 0.1, (0.9, 0.999))[1], step_size(6, 0.1, (0.9, 0.999))[1]
    (False, True)
    """
    beta1, beta2 = betas
    longest = 2 / (1 - beta2) - 1
    power = beta2**step
    length = longest - 2 * step * power / (1 - power)
    bias = 1 - beta1**step
    if length < LEAST or (strict and length == LEAST):
        return rate / bias, False
    rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return rate * math.sqrt(rectified * (1 - power)) / bias, True
