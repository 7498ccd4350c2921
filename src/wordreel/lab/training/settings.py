"""Everything about a run that is not the model, as plain frozen data: nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Position = Literal["first", "last", "uniform"]


@dataclass(frozen=True)
class LossSettings:
    """`same_video`: captions of one video in one batch are its negatives ("count", as published) or not.

    `diagonal` is the first MoEE code's margin, `prior_temperature` the dual softmax's.
    """

    kind: Literal["max-margin", "info-nce", "dual-softmax"] = "max-margin"
    margin: float = 0.2
    diagonal: bool = False
    temperature: float = 0.05
    prior_temperature: float = 1000.0
    same_video: Literal["leave out", "count"] = "leave out"

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.prior_temperature <= 0:
            raise ValueError("temperatures must be above 0")


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
    window: float = 0.0  # seconds around a caption's span that its video is cut to; 0: all of the video
    segment_words: int = 0  # consecutive words drawn from a transcript in each step; 0: whole captions
    until: float = 0.0  # seconds: words of a transcript that begin later are left out; 0: none are

    def __post_init__(self) -> None:
        numbers = ("limit", "val_limit", "window", "segment_words", "until")
        if below := [name for name in numbers if getattr(self, name) < 0]:
            raise ValueError(f"{' and '.join(below)} must not be below 0")


@dataclass(frozen=True)
class FrameSettings:
    """Which frames are read, and how they are loaded. The model says how many at most (`model.max_frames`).

    The model also says how many frames a second (`model.frame_rate`); of more than the most, `position` says
    which are read. Augmentation crops
    a random part of all frames of a video (`crop` is the smallest share of their area; 1: no augmentation)
    and mirrors them with chance `flip`. `workers` decode (0: one per core), `ahead` batches are loaded in
    advance, and `cache_gib` of memory hold decoded videos for the next epochs.
    """

    position: Position = "uniform"
    crop: float = 1.0
    flip: float = 0.0
    workers: int = 0
    ahead: int = 3
    cache_gib: float = 0.0

    def __post_init__(self) -> None:
        if self.workers < 0 or self.ahead < 1 or self.cache_gib < 0:
            raise ValueError("ahead must be at least 1, workers and cache_gib not below 0")
        if not 0 < self.crop <= 1 or not 0 <= self.flip <= 1:
            raise ValueError("crop is a share above 0 and at most 1, flip a chance")


@dataclass(frozen=True)
class RunSettings:
    """`steps` in an epoch: 0 for once over the data. `select` is the figure that chooses the best epoch.

    `expert_dropout` hides whole experts of a video, of which one always stays.
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
    precision: Literal["float32", "bfloat16", "float16", "auto"] = "float32"
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

    def precision_on(self, device: str) -> str:
        """Return the precision on "cpu" or "cuda"."""
        if self.precision != "auto":
            return self.precision
        return "bfloat16" if device == "cuda" else "float32"


@dataclass(frozen=True)
class TeachSettings:
    """TeachText: `teachers` are model folders or names of a tree's teachers; none: no distillation.

    `kind` compares similarities, `delta` is Huber's and `weight` multiplies the distillation loss.
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
    """The weights that training starts from.

    `model` is a model to fine-tune: a training's folder, or a published checkpoint. `text` is "minilm" or the
    folder of a published text network. `backbone` is a CLIP for a model that reads frames: a Hugging Face
    folder or a checkpoint file; `scratch` allows neither. `frozen_layers` blocks of both
    towers stay as they are, and with them the embeddings and the patch projection (-1: everything trains); a
    3-D patch always trains. With `checkpointing` the backward pass computes activations again instead of
    storing them.
    """

    text: str = ""
    model: str = ""
    backbone: str = ""
    scratch: bool = False
    frozen_layers: int = -1
    checkpointing: bool = False

    def __post_init__(self) -> None:
        if self.frozen_layers < -1:
            raise ValueError("frozen_layers is at least -1")
