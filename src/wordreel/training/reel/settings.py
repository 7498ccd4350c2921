"""How the default model is trained. The values were chosen on validation videos (docs/default_model.md)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settings:
    """`repeat` says how often an epoch goes over each source; every other is gone over once.

    With `teachers`, as many models are trained first, with other seeds, and the model learns from the mean of
    their similarities as well as from the pairs.
    """

    epochs: int = 60
    batch: int = 512  # items of a step
    captions: int = 1  # of each item in a step
    rate: float = 1e-3
    encoder_rate: float = 5e-5  # 0 keeps the sentence encoder as it is
    decay: float = 0.1
    encoder_decay: float = 0.01
    warmup: float = 0.05  # of all steps
    clip: float = 5.0
    drop: float = 0.3
    input_drop: float = 0.6  # of the experts' features: the strongest single regulariser
    token_drop: float = 0.4  # of stretches of time; one always stays
    expert_drop: float = 0.3  # of whole experts but appearance
    temperature: float = 0.05
    soft: float = 0.2  # share of the target that goes to items whose captions say nearly the same
    soft_temperature: float = 0.1
    short: float = 0.15  # share of captions that are cut to a few of their words, as people type
    repeat: dict[str, int] = field(default_factory=lambda: {"msvd": 3, "msrvtt": 3})
    teachers: int = 0
    taught: float = 0.8  # share of the loss that is what the teachers say
    taught_temperature: float = 0.1
    seed: int = 0
