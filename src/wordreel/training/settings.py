"""Everything about a run that is not the model, as plain frozen data: nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LossSettings:
    """`same_video`: captions of one video in one batch are negatives of it ("count", as published) or not."""

    kind: Literal["max-margin", "info-nce", "dual-softmax"] = "max-margin"
    margin: float = 0.2
    diagonal: bool = False
    temperature: float = 0.05
    learn_temperature: bool = False
    prior_temperature: float = 1000.0
    same_video: Literal["leave out", "count"] = "leave out"

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.prior_temperature <= 0:
            raise ValueError("temperatures must be above 0")


@dataclass(frozen=True)
class OptimiserSettings:
    """`betas` and `eps` are the optimiser's published ones unless given; `clip` is the largest gradient norm.

    `text_rate` is for a text network that is fine-tuned (0: the same rate).
    """

    kind: Literal["adam", "adamw", "radam", "ranger"] = "adam"
    rate: float = 1e-4
    weight_decay: float = 0.0
    betas: tuple[float, float] | None = None
    eps: float = 0.0
    clip: float = 0.0
    lookahead: int = 6
    lookahead_share: float = 0.5
    text_rate: float = 0.0

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.weight_decay < 0 or self.clip < 0 or self.lookahead < 1:
            raise ValueError("rate must be above 0, weight_decay and clip not below, lookahead at least 1")
        if self.text_rate < 0 or self.eps < 0 or not all(0 <= beta < 1 for beta in self.betas or ()):
            raise ValueError("text_rate and eps must not be below 0, and betas lie from 0 to below 1")
        if not 0 <= self.lookahead_share <= 1:
            raise ValueError("lookahead_share is a share of 1")


@dataclass(frozen=True)
class ScheduleSettings:
    kind: Literal["constant", "step", "exponential", "cosine"] = "step"
    gamma: float = 0.95
    every: int = 1  # epochs
    floor: float = 0.0
    warmup: int = 0  # steps

    def __post_init__(self) -> None:
        if self.every < 1 or self.warmup < 0 or not self.gamma > 0:
            raise ValueError("every must be at least 1, warmup not below 0, gamma above 0")


@dataclass(frozen=True)
class DataSettings:
    """Where pairs come from, and how they are shown.

    `train`, `val` and `test` name splits of `dataset`'s tree; `words` its word features. `rule` is which
    captions there are (see `wordreel.datasets.rules`), `limit` and `val_limit` how many of an item (0: all).
    `captions` is what an epoch is: once over the videos with a random caption each ("one"), or once over all
    pairs ("all").
    """

    dataset: str = ""
    train: str = "train"
    val: str = "val"
    test: str = "test"
    words: str = ""
    rule: Literal["all", "one", "paragraph"] = "all"
    limit: int = 0
    val_limit: int = 0
    captions: Literal["one", "all"] = "one"
    by_source: bool = False  # every batch from one source
    precision: Literal["float32", "float16", "bfloat16"] = "float32"  # in which features are held
    window: float = 0.0  # seconds around a caption's span that its video is cut to; 0: all of the video
    stretch: int = 0  # words drawn of a transcript in every step; 0: captions are taken whole
    until: float = 0.0  # seconds: words of a transcript that begin later are left out; 0: none are

    def __post_init__(self) -> None:
        below = [n for n in ("limit", "val_limit", "window", "stretch", "until") if getattr(self, n) < 0]
        if below:
            raise ValueError(f"{' and '.join(below)} must not be below 0")


@dataclass(frozen=True)
class RunSettings:
    """`steps` in an epoch: 0 for once over the data. `select` is the figure that chooses the best epoch."""

    epochs: int = 100
    batch: int = 64
    steps: int = 0
    drop_last: bool = False
    seed: int = 0
    select: Literal["t2v", "v2t", "both", "last"] = "t2v"
    patience: int = 0  # epochs without a better one before training ends; 0: never
    validate_every: int = 1  # epochs
    expert_dropout: float = 0.0
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    compile: bool = False
    save_minutes: float = 5.0

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch < 2 or self.steps < 0 or self.validate_every < 1:
            raise ValueError(
                "batch must be at least 2, validate_every at least 1, epochs and steps not below 0"
            )
        if not 0 <= self.expert_dropout < 1:
            raise ValueError("expert_dropout is a chance below 1")
        if self.seed < 0 or self.patience < 0 or self.save_minutes < 0:
            raise ValueError("seed, patience and save_minutes must not be below 0")


@dataclass(frozen=True)
class TeachSettings:
    """TeachText: `teachers` are model folders or names of a tree's teachers; none: no distillation.

    `denoise` is the name of a tree's caption mask, or "rank:N": captions whose video is not among the first N
    for the teachers are left out.
    """

    teachers: tuple[str, ...] = ()
    kind: Literal["huber", "l1", "l2"] = "huber"
    delta: float = 1.0
    weight: float = 1.0
    denoise: str = ""

    def __post_init__(self) -> None:
        if self.weight < 0 or self.delta <= 0:
            raise ValueError("weight must not be below 0, and delta above it")


@dataclass(frozen=True)
class StartSettings:
    """What weights begin as: `text` is "minilm" or a published network's folder, `model` a model folder."""

    text: str = ""
    model: str = ""
