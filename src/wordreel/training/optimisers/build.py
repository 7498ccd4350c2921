"""From a recipe's words to an optimiser over a module's trainable parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wordreel.training.optimisers.lookahead import Ranger
from wordreel.training.optimisers.radam import RAdam
from wordreel.training.settings import OptimiserSettings


def build_optimiser(
    settings: OptimiserSettings, module: nn.Module, loss: nn.Module | None = None, captured: bool = False
) -> torch.optim.Optimizer:
    """`captured`: a step will be part of a CUDA graph. A text network may have a learning rate of its own."""
    groups = parameter_groups(settings, module, loss)
    betas = settings.betas or ((0.95, 0.999) if settings.kind == "ranger" else (0.9, 0.999))
    eps = settings.eps or (1e-5 if settings.kind == "ranger" else 1e-8)
    decay = settings.weight_decay
    if settings.kind == "ranger":
        return Ranger(groups, settings.rate, betas, eps, decay, settings.lookahead, settings.lookahead_share)
    if settings.kind == "radam":
        return RAdam(groups, settings.rate, betas, eps, decay)
    kind = torch.optim.Adam if settings.kind == "adam" else torch.optim.AdamW
    on_gpu = any(p.device.type == "cuda" for group in groups for p in group["params"])
    if captured:  # the graph reads its learning rate from the device
        for group in groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=group["params"][0].device)
    return kind(
        groups, lr=settings.rate, betas=betas, eps=eps, weight_decay=decay, fused=on_gpu, capturable=captured
    )


def parameter_groups(
    settings: OptimiserSettings, module: nn.Module, loss: nn.Module | None = None
) -> list[dict[str, Any]]:
    """What is trained, in the module's order; frozen parameters are left out. `scale` multiplies the rate."""
    words: list[Tensor] = []
    rest: list[Tensor] = []
    for name, p in module.named_parameters():
        if p.requires_grad:
            (words if name.startswith("caption.words.") else rest).append(p)
    groups: list[dict[str, Any]] = []
    if settings.text_rate and words:
        groups.append({"params": rest, "lr": settings.rate, "scale": 1.0})
        groups.append(
            {"params": words, "lr": settings.text_rate, "scale": settings.text_rate / settings.rate}
        )
    else:
        both = [p for p in module.parameters() if p.requires_grad]
        groups.append({"params": both, "lr": settings.rate, "scale": 1.0})
    extra = [] if loss is None else [p for p in loss.parameters() if p.requires_grad]
    if extra:
        groups.append({"params": extra, "lr": settings.rate, "scale": 1.0, "weight_decay": 0.0})
    return [group for group in groups if group["params"]]
