"""How the default model is adapted. The values were chosen on captions of MSVD (docs/tune.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """`strengths` are how far to go from the default model to the fitted one; 0 is not at all."""

    steps: int = 300
    batch: int = 256  # videos, one caption each
    rate: float = 3e-4
    word_rate: float = 1e-2
    warmup: int = 20  # steps
    temperature: float = 0.025  # of the similarities that search ranks by
    drop: float = 0.1  # of what the last matrices read
    word_drop: float = 0.3
    anchor: float = 1.0  # how much staying the same on everyday queries counts
    anchor_temperature: float = 0.05
    anchor_batch: int = 256  # everyday queries
    folds: int = 5
    choosing: float = 0.25  # share of the videos outside a fold that choose the strength
    strengths: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    kept_at_least: float = 0.7  # of the ten best hits of everyday queries, on average
    seed: int = 0
