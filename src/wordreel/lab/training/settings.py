"""Everything about a run that is not the model, as plain frozen data: nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LossSettings:
    """`same_video`: captions of one video in one batch are its negatives ("count", as published) or not.

    `soft_targets` is the share of the target that goes to the batch's videos whose captions mean nearly the
    same, by a softmax of the sentence encoder's cosines over `soft_temperature` (info-nce only).
    """

    kind: Literal["max-margin", "info-nce", "dual-softmax"] = "max-margin"
    margin: float = 0.2
    diagonal: bool = False
    temperature: float = 0.05
    learn_temperature: bool = False
    prior_temperature: float = 1000.0
    same_video: Literal["leave out", "count"] = "leave out"
    soft_targets: float = 0.0
    soft_temperature: float = 0.1

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.prior_temperature <= 0 or self.soft_temperature <= 0:
            raise ValueError("temperatures must be above 0")
        if not 0 <= self.soft_targets < 1:
            raise ValueError("soft_targets is a share below 1")
        if self.soft_targets and self.kind != "info-nce":
            raise ValueError(f"soft_targets are for kind=info-nce; {self.kind} has no target to share")


@dataclass(frozen=True)
class OptimiserSettings:
    """`betas` and `eps` are the optimiser's published ones unless given; `clip` is the largest gradient norm.

    `text_lr` and `text_weight_decay` are for a text network that is fine-tuned (0 and None: those of the
    rest), `backbone_lr` for the CLIP of a model that reads frames.
    `decay_biases=False` spares biases and norms, all parameters of one dimension, from weight decay
    (bert-adam: by name, as published). `clip_each` is bert-adam's largest gradient norm of a single
    parameter.
    """

    kind: Literal["adam", "adamw", "radam", "ranger", "bert-adam"] = "adam"
    lr: float = 1e-4
    weight_decay: float = 0.0
    decay_biases: bool = True
    betas: tuple[float, float] | None = None
    eps: float = 0.0
    clip: float = 0.0
    lookahead: int = 6
    lookahead_alpha: float = 0.5
    text_lr: float = 0.0
    text_weight_decay: float | None = None
    backbone_lr: float = 0.0
    clip_each: float = 1.0

    def __post_init__(self) -> None:
        if self.lr <= 0 or self.weight_decay < 0 or self.clip < 0 or self.lookahead < 1:
            raise ValueError("lr must be above 0, weight_decay and clip not below, lookahead at least 1")
        if self.text_lr < 0 or self.eps < 0 or not all(0 <= beta < 1 for beta in self.betas or ()):
            raise ValueError("text_lr and eps must not be below 0, and betas lie from 0 to below 1")
        if self.backbone_lr < 0 or self.clip_each < 0:
            raise ValueError("backbone_lr and clip_each must not be below 0")
        if self.text_weight_decay is not None and self.text_weight_decay < 0:
            raise ValueError("text_weight_decay must not be below 0")
        if not 0 <= self.lookahead_alpha <= 1:
            raise ValueError("lookahead_alpha lies from 0 to 1")


@dataclass(frozen=True)
class ScheduleSettings:
    """`warmup` counts steps; `warmup_ratio` is a share of all steps instead."""

    kind: Literal["constant", "step", "exponential", "cosine", "bert-cosine"] = "step"
    gamma: float = 0.95
    every: int = 1  # epochs
    floor: float = 0.0
    warmup: int = 0
    warmup_ratio: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.warmup_ratio <= 1 or (self.warmup and self.warmup_ratio):
            raise ValueError("warmup_ratio is a share of all steps, given instead of warmup")
        if self.every < 1 or self.warmup < 0 or not self.gamma > 0:
            raise ValueError("every must be at least 1, warmup not below 0, gamma above 0")


@dataclass(frozen=True)
class DataSettings:
    """Where pairs come from, and how they become batches.

    `train`, `val` and `test` name splits of `dataset`'s tree; `words` its word features. `rule` is the
    caption rule (see `wordreel.lab.datasets.caption_rules`), `limit` and `val_limit` how many captions of an
    item are used (0: all).
    `captions` is what an epoch is: once over the videos with a random caption each ("one"), or once over all
    pairs ("all"). `shorten_captions` is the chance that a caption is cut to some of its words, as people type
    (each word stays with one half).
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
    segment_words: int = 0  # consecutive words drawn from a transcript in each step; 0: whole captions
    until: float = 0.0  # seconds: words of a transcript that begin later are left out; 0: none are
    shorten_captions: float = 0.0
    unique_captions: bool = False  # leave out captions that repeat another one of the same video

    def __post_init__(self) -> None:
        if not 0 <= self.shorten_captions <= 1:
            raise ValueError("shorten_captions is a chance, from 0 to 1")
        below = [
            n for n in ("limit", "val_limit", "window", "segment_words", "until") if getattr(self, n) < 0
        ]
        if below:
            raise ValueError(f"{' and '.join(below)} must not be below 0")


@dataclass(frozen=True)
class RunSettings:
    """`steps` in an epoch: 0 for once over the data. `select` is the figure that chooses the best epoch.

    `expert_dropout` hides whole experts of a video, but none of `expert_dropout_spares`; `token_dropout`
    hides single rows of an expert, of which one always stays. `alone_chance` is the chance that a video which
    has some of the experts of `alone` shows these and no other, so that a model learns to do with them.
    `precision="auto"` is bfloat16 on a GPU and float32 on a CPU.
    """

    epochs: int = 100
    batch: int = 64
    steps: int = 0
    drop_last: bool = False
    seed: int = 0
    select: Literal["t2v", "v2t", "both", "last"] = "t2v"
    patience: int = 0  # epochs without a better one before training ends; 0: never
    validate_every: int = 1  # epochs
    expert_dropout: float = 0.0
    expert_dropout_spares: tuple[str, ...] = ()
    token_dropout: float = 0.0
    alone: tuple[str, ...] = ()
    alone_chance: float = 0.0
    precision: Literal["float32", "bfloat16", "float16", "auto"] = "float32"
    compile: bool = False
    save_minutes: float = 5.0

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch < 2 or self.steps < 0 or self.validate_every < 1:
            raise ValueError(
                "batch must be at least 2, validate_every at least 1, epochs and steps not below 0"
            )
        if not all(
            0 <= chance < 1 for chance in (self.expert_dropout, self.token_dropout, self.alone_chance)
        ):
            raise ValueError("expert_dropout, token_dropout and alone_chance are chances below 1")
        if bool(self.alone) != bool(self.alone_chance):
            raise ValueError("alone and alone_chance go together: which experts, and how often")
        if self.seed < 0 or self.patience < 0 or self.save_minutes < 0:
            raise ValueError("seed, patience and save_minutes must not be below 0")

    def precision_on(self, device: str) -> str:
        """The precision on "cpu" or "cuda"."""
        if self.precision != "auto":
            return self.precision
        return "bfloat16" if device == "cuda" else "float32"


@dataclass(frozen=True)
class TeachSettings:
    """TeachText: `teachers` are model folders or names of a tree's teachers; none: no distillation.

    `kind` compares single similarities ("huber", "l1", "l2") or their softmax over `temperature`, captions to
    videos and back ("kl").

    `denoise` is the name of a tree's caption mask, or "rank:N": captions whose video is not among the first N
    for the teachers are left out.
    """

    teachers: tuple[str, ...] = ()
    kind: Literal["huber", "l1", "l2", "kl"] = "huber"
    delta: float = 1.0
    temperature: float = 0.1
    weight: float = 1.0
    denoise: str = ""

    def __post_init__(self) -> None:
        if self.weight < 0 or self.delta <= 0 or self.temperature <= 0:
            raise ValueError("weight must not be below 0, and delta and temperature above it")


@dataclass(frozen=True)
class StartSettings:
    """What weights begin as: `text` is "minilm" or a published network's folder, `model` a model folder."""

    text: str = ""
    model: str = ""
