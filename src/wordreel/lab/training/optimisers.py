"""How parameters are updated: optimisers, learning rate schedules, and the precision of a step.

Optimisers are torch's, Ranger (torch's RAdam with Lookahead) and BertAdam as published. A schedule is a
factor of the initial learning rate:

| kind | factor after s of S steps, n per epoch |
|---|---|
| constant | 1 |
| step | γ^⌊s / (n · every)⌋ (StepLR, as published for CE and MMT) |
| exponential | γ^(s / n) |
| cosine | floor + (1 − floor) ½ (1 + cos π s / S) |
| bert-cosine | ½ (1 + cos π s / S), and s / w in a warm-up of w steps (BertAdam, as published) |

The warm-up of bert-cosine begins at 0, and ends with a jump: after a tenth of the steps from 1 to 0.976. That
of the others multiplies the factor by min(1, (s + 1) / w); `warmup_ratio` r is one of r S steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wordreel.lab.training.settings import OptimiserSettings, ScheduleSettings

PUBLISHED = {"ranger": ((0.95, 0.999), 1e-5), "bert-adam": ((0.9, 0.98), 1e-6)}  # betas, eps


class Ranger(torch.optim.RAdam):
    """Ranger (Wright, 2019): RAdam with Lookahead (Zhang et al., 2019, arXiv 1907.08610).

        every k steps:  slow ← slow + α (p − slow),   p ← slow

    The slow weights are initialised to the weights before the first step. RAdam (Liu et al., 2019, arXiv
    1908.03265) is torch's, with decoupled weight decay.
    """

    def __init__(self, params: Iterable[Any], lr: float, k: int = 6, alpha: float = 0.5, **more: Any) -> None:
        super().__init__(params, lr, decoupled_weight_decay=True, **more)
        self.k, self.alpha = k, alpha
        for p in (p for group in self.param_groups for p in group["params"]):
            zeros = {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
            self.state[p] = {"step": torch.tensor(0.0), **zeros, "slow": p.detach().clone()}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step, and every k-th time move the slow weights. Closures are not supported."""
        super().step()
        due = [p for p, state in self.state.items() if p.grad is not None and state["step"] % self.k == 0]
        if due:
            slow = [self.state[p]["slow"] for p in due]
            torch._foreach_lerp_(slow, due, self.alpha)
            torch._foreach_copy_(due, slow)


class BertAdam(torch.optim.Optimizer):
    """Adam without bias correction, as CLIP4Clip, TS2-Net and many fine-tunings of BERT use it.

        g ← g · min(1, c / ‖g‖) for each parameter,  m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
        p ← p − η (m / (√v + ε) + λ p)

    Weight decay joins the update, not the gradient. The learning rate's warm-up takes the place of a bias
    correction (see `lr_factor`). `clip_each` is c; 0 does not clip.
    """

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

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient. Closures are not supported."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in (p for p in group["params"] if p.grad is not None):
                if not self.state[p]:
                    self.state[p] = {"mean": torch.zeros_like(p), "square": torch.zeros_like(p)}
                grad, mean, square = p.grad, self.state[p]["mean"], self.state[p]["square"]
                if self.clip_each:
                    grad = grad * (self.clip_each / (grad.norm() + 1e-6)).clamp(max=1.0)
                mean.lerp_(grad, 1 - beta1)
                square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                update = mean / square.sqrt().add_(group["eps"]) + group["weight_decay"] * p
                p.add_(update, alpha=-group["lr"])


def build_optimiser(settings: OptimiserSettings, module: nn.Module) -> torch.optim.Optimizer:
    """Return the optimiser that a recipe names, over the trainable parameters of a module."""
    groups = parameter_groups(settings, module)
    betas, eps = PUBLISHED.get(settings.kind, ((0.9, 0.999), 1e-8))
    betas, eps, decay = settings.betas or betas, settings.eps or eps, settings.weight_decay
    if settings.kind == "bert-adam":
        return BertAdam(groups, settings.lr, betas, eps, decay, settings.clip_each)
    shared: dict[str, Any] = {"lr": settings.lr, "betas": betas, "eps": eps, "weight_decay": decay}
    if settings.kind == "ranger":
        return Ranger(groups, k=settings.lookahead, alpha=settings.lookahead_alpha, **shared)
    if settings.kind == "radam":
        return torch.optim.RAdam(groups, decoupled_weight_decay=True, **shared)
    kind = torch.optim.Adam if settings.kind == "adam" else torch.optim.AdamW
    on_gpu = any(p.device.type == "cuda" for group in groups for p in group["params"])
    return kind(groups, fused=on_gpu, **shared)


def parameter_groups(settings: OptimiserSettings, module: nn.Module) -> list[dict[str, Any]]:
    """Return trained parameters by learning rate and weight decay, in the module's order."""
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, p in module.named_parameters():
        if not p.requires_grad:
            continue
        lr, decay = settings.lr, settings.weight_decay
        if name.startswith("caption.words."):
            lr = settings.text_lr or lr
            decay = decay if settings.text_weight_decay is None else settings.text_weight_decay
        if name.startswith(("clip.", "network.")):
            lr = settings.backbone_lr or lr
        if not settings.decay_biases and _is_spared(settings, name, p):
            decay = 0.0
        groups.setdefault((lr, decay), []).append(p)
    return [{"params": some, "lr": lr, "weight_decay": decay} for (lr, decay), some in groups.items()]


def _is_spared(settings: OptimiserSettings, name: str, p: Tensor) -> bool:
    """BertAdam goes by the names of BERT, as published: CLIP's norms are called otherwise and do decay."""
    if settings.kind == "bert-adam":
        return "bias" in name or "LayerNorm" in name
    return p.ndim <= 1


def lr_factor(settings: ScheduleSettings, step: int, total_steps: int, steps_per_epoch: int) -> float:
    """Return the factor by which step `step` (0, 1, …) scales the initial learning rate.

    >>> [round(lr_factor(ScheduleSettings("step", gamma=0.5), s, 4, 2), 3) for s in range(4)]
    [1.0, 1.0, 0.5, 0.5]
    """
    warmup = settings.warmup or settings.warmup_ratio * total_steps
    if settings.kind == "bert-cosine":
        return step / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * step / max(total_steps, 1)))
    factor = 1.0
    if settings.kind == "step":
        factor = settings.gamma ** (step // (steps_per_epoch * settings.every))
    elif settings.kind == "exponential":
        factor = settings.gamma ** (step / steps_per_epoch)
    elif settings.kind == "cosine":
        cosine = 0.5 * (1 + math.cos(math.pi * step / max(total_steps, 1)))
        factor = settings.floor + (1 - settings.floor) * cosine
    if warmup:
        factor *= min(1.0, (step + 1) / warmup)
    return factor


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
        """Return a scaler that keeps float16 gradients from underflowing.

        It is disabled for other precisions.
        """
        return torch.amp.GradScaler(self.device, enabled=self.name == "float16")
