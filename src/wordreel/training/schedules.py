"""The learning rate over a run, as a factor of its first value.

| kind | factor after s of S steps, n to an epoch |
|---|---|
| constant | 1 |
| step | γ^⌊s / (n · every)⌋ (StepLR, as published for CE and MMT) |
| exponential | γ^(s / n) |
| cosine | floor + (1 − floor) ½ (1 + cos π s / S) |

A warm-up of w steps multiplies this by min(1, (s + 1) / w).
"""

from __future__ import annotations

import math

from wordreel.training.settings import ScheduleSettings


def factor(settings: ScheduleSettings, step: int, steps: int, per_epoch: int) -> float:
    """
    >>> [round(factor(ScheduleSettings("step", gamma=0.5), s, 4, 2), 3) for s in range(4)]
    [1.0, 1.0, 0.5, 0.5]
    """
    found = 1.0
    if settings.kind == "step":
        found = settings.gamma ** (step // (per_epoch * settings.every))
    elif settings.kind == "exponential":
        found = settings.gamma ** (step / per_epoch)
    elif settings.kind == "cosine":
        found = settings.floor + (1 - settings.floor) * 0.5 * (1 + math.cos(math.pi * step / max(steps, 1)))
    if settings.warmup:
        found *= min(1.0, (step + 1) / settings.warmup)
    return found
