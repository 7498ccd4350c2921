"""Learning rate schedules, as a factor of the initial learning rate.

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

from wordreel.lab.training.settings import ScheduleSettings


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
