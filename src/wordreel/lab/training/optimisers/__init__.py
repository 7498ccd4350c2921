"""Optimisers: Adam and AdamW are torch's; RAdam and Ranger are written here to run inside a CUDA graph.

BertAdam is written here as published.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wordreel.lab.training.optimisers.bert_adam import BertAdam
from wordreel.lab.training.optimisers.radam import RAdam
from wordreel.lab.training.optimisers.ranger import Ranger
from wordreel.lab.training.settings import OptimiserSettings

__all__ = ["BertAdam", "RAdam", "Ranger", "build_optimiser", "parameter_groups"]

PUBLISHED = {"ranger": ((0.95, 0.999), 1e-5), "bert-adam": ((0.9, 0.98), 1e-6)}  # betas, eps


def build_optimiser(
    settings: OptimiserSettings, module: nn.Module, loss: nn.Module | None = None, captured: bool = False
) -> torch.optim.Optimizer:
    """The optimiser that a recipe names, over the trainable parameters of a module and its loss.

    With `captured` its step becomes part of a CUDA graph.
    """
    groups = parameter_groups(settings, module, loss)
    betas, eps = PUBLISHED.get(settings.kind, ((0.9, 0.999), 1e-8))
    betas, eps, decay = settings.betas or betas, settings.eps or eps, settings.weight_decay
    if settings.kind == "bert-adam":
        return BertAdam(groups, settings.lr, betas, eps, decay, settings.clip_each)
    if settings.kind == "ranger":
        return Ranger(groups, settings.lr, betas, eps, decay, settings.lookahead, settings.lookahead_alpha)
    if settings.kind == "radam":
        return RAdam(groups, settings.lr, betas, eps, decay)
    kind = torch.optim.Adam if settings.kind == "adam" else torch.optim.AdamW
    on_gpu = any(p.device.type == "cuda" for group in groups for p in group["params"])
    if captured:  # the graph reads its learning rate from the device
        for group in groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=group["params"][0].device)
    return kind(
        groups, lr=settings.lr, betas=betas, eps=eps, weight_decay=decay, fused=on_gpu, capturable=captured
    )


def parameter_groups(
    settings: OptimiserSettings, module: nn.Module, loss: nn.Module | None = None
) -> list[dict[str, Any]]:
    """Trained parameters by learning rate and weight decay, in the module's order."""
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
    result: list[dict[str, Any]] = [
        {"params": some, "lr": lr, "weight_decay": decay} for (lr, decay), some in groups.items()
    ]
    extra = [] if loss is None else [p for p in loss.parameters() if p.requires_grad]
    if extra:
        result.append({"params": extra, "lr": settings.lr, "weight_decay": 0.0})
    return result


def _is_spared(settings: OptimiserSettings, name: str, p: Tensor) -> bool:
    """BertAdam goes by the names of BERT, as published: CLIP's norms are called otherwise and do decay."""
    if settings.kind == "bert-adam":
        return "bias" in name or "LayerNorm" in name
    return p.ndim <= 1
