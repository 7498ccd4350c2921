"""Everything about a run that is not the model, as plain frozen data: nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from wordreel.lab.training.from_dict import Range

Count = Annotated[int, Range(0)]
AtLeastOne = Annotated[int, Range(1)]
NotNegative = Annotated[float, Range(0)]
Above0 = Annotated[float, Range(0, above=True)]
Share = Annotated[float, Range(0, 1)]
Position = Literal["first", "last", "uniform"]


@dataclass(frozen=True)
class LossSettings:
    """`same_video`: captions of one video in one batch are its negatives ("count", as published) or not.

    `diagonal` is the first MoEE code's margin, `prior_temperature` the dual softmax's.
    """

    kind: Literal["max-margin", "info-nce", "dual-softmax"] = "max-margin"
    margin: float = 0.2
    diagonal: bool = False
    temperature: Above0 = 0.05
    prior_temperature: Above0 = 1000.0
    same_video: Literal["leave out", "count"] = "leave out"


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
    lr: Above0 = 1e-4
    weight_decay: NotNegative = 0.0
    decay_biases: bool = True
    betas: tuple[Share, Share] | None = None
    eps: NotNegative = 0.0
    clip: NotNegative = 0.0
    lookahead: AtLeastOne = 6
    lookahead_alpha: Share = 0.5
    text_lr: NotNegative = 0.0
    text_weight_decay: NotNegative | None = None
    backbone_lr: NotNegative = 0.0
    clip_each: NotNegative = 1.0


@dataclass(frozen=True)
class ScheduleSettings:
    """`warmup` counts steps; `warmup_ratio` is a share of all steps instead."""

    kind: Literal["constant", "step", "exponential", "cosine", "bert-cosine"] = "step"
    gamma: Above0 = 0.95
    every: AtLeastOne = 1  # epochs
    floor: float = 0.0
    warmup: Count = 0
    warmup_ratio: Share = 0.0

    def __post_init__(self) -> None:
        if self.warmup and self.warmup_ratio:
            raise ValueError("warmup_ratio is a share of all steps, given instead of warmup")


@dataclass(frozen=True)
class DataSettings:
    """Where pairs come from, and how they become batches.

    `train`, `val` and `test` name splits of `dataset`'s tree; `words` its word features. `rule` is the
    caption rule (see `wordreel.lab.datasets.split_builder`), `limit` and `val_limit` how many captions of an
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
    limit: Count = 0
    val_limit: Count = 0
    captions: Literal["one", "all"] = "one"
    by_source: bool = False  # every batch from one source
    window: NotNegative = 0.0  # seconds around a caption's span that its video is cut to; 0: all of the video
    segment_words: Count = 0  # consecutive words drawn from a transcript in each step; 0: whole captions
    until: NotNegative = 0.0  # seconds: words of a transcript that begin later are left out; 0: none are


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
    crop: Annotated[float, Range(0, 1, above=True)] = 1.0
    flip: Share = 0.0
    workers: Count = 0
    ahead: AtLeastOne = 3
    cache_gib: NotNegative = 0.0


@dataclass(frozen=True)
class RunSettings:
    """`steps` in an epoch: 0 for once over the data. `select` is the figure that chooses the best epoch.

    `expert_dropout` hides whole experts of a video, of which one always stays.
    `precision="auto"` is bfloat16 on a GPU and float32 on a CPU.
    """

    epochs: Count = 100
    batch: Annotated[int, Range(2)] = 64
    steps: Count = 0
    drop_last: bool = False
    seed: Count = 0
    select: Literal["t2v", "v2t", "both", "last"] = "t2v"
    patience: Count = 0  # epochs without a better one before training ends; 0: never
    validate_every: AtLeastOne = 1  # epochs
    expert_dropout: Share = 0.0
    precision: Literal["float32", "bfloat16", "float16", "auto"] = "float32"
    compile: bool = False
    save_minutes: NotNegative = 5.0

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
    delta: Above0 = 1.0
    weight: NotNegative = 1.0
    denoise: str = ""


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
    frozen_layers: Annotated[int, Range(-1)] = -1
    checkpointing: bool = False
