"""The configuration of a trainable model, as plain frozen data: nothing here imports torch.

`mode` chooses between two readings of a paper. "paper" follows the text and leaves out the released code's
known defects; "released" does what the published code and checkpoints do. The parameter counts are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wordreel.errors import NextStep, WeightsError
from wordreel.models.laboratory import Mode


@dataclass(frozen=True)
class ExpertConfig:
    """One source of video features: `dim` numbers per row, and how a model gathers the rows.

    `pool` is "mean" or "vlad" (NetVLAD with `clusters` and `ghosts`). The multi-modal transformer reads rows
    one by one and uses `type_id` and `timed` instead. Rows past `max_tokens` are left out (0: no limit).
    """

    name: str
    dim: int
    pool: Literal["mean", "vlad"] = "mean"
    clusters: int = 0
    ghosts: int = 0
    max_tokens: int = 0
    type_id: int = 0  # row of the transformer's table of experts
    timed: bool = True  # whether rows carry a known time for the transformer

    def __post_init__(self) -> None:
        if self.dim < 1 or (self.pool == "vlad" and self.clusters < 1):
            raise ValueError(f"expert {self.name!r} needs a dimension, and clusters if it is pooled by vlad")

    @property
    def pooled(self) -> int:
        """Numbers per video after pooling."""
        return self.dim * self.clusters if self.pool == "vlad" else self.dim


@dataclass(frozen=True)
class TransformerConfig:
    """The size of a BERT-like encoder; the defaults are BERT-base-cased."""

    vocabulary: int = 28_996
    hidden: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072
    positions: int = 512
    types: int = 2
    dropout: float = 0.1


MINILM = TransformerConfig(30_522, 384, 6, 12, 1536)


@dataclass(frozen=True)
class TextConfig:
    """How a caption becomes one vector.

    `words` says what a token is: "vectors" are ready word vectors `[t, dim]` (word2vec, GPT, the sentence
    encoder's tokens), "table" a trainable table of `vocabulary × dim`, "bert", "gpt" and "gpt2" a transformer
    of size `network`, "huggingface" any encoder of that library (`source` names it); `pool` gathers them,
    "sentence" as sentence-transformers does: the mean over all tokens, at unit length. `frozen` keeps the
    words' network (or table) as it was; with `frozen_layers` only its first layers, with `frozen_embeddings`
    only its embeddings.
    """

    words: Literal["vectors", "table", "bert", "gpt", "gpt2", "huggingface"] = "vectors"
    dim: int = 384
    pool: Literal["vlad", "cls", "max", "mean", "lstm", "sentence"] = "vlad"
    clusters: int = 0
    ghosts: int = 0
    lstm: int = 512
    vocabulary: int = 0
    network: TransformerConfig | None = None
    frozen: bool = False
    frozen_layers: int = 0
    frozen_embeddings: bool = False
    max_tokens: int = 30
    stop_words: bool = True  # False: leave stop words out
    source: str = "minilm"  # where tokens come from: see wordreel.lab.models.text.tokenizers

    def __post_init__(self) -> None:
        if self.pool == "vlad" and self.clusters < 1:
            raise ValueError("text pooled by vlad needs clusters")
        if self.words in ("bert", "gpt", "gpt2") and self.network is None:
            raise ValueError(f"text of {self.words} needs the size of its network")
        if self.words == "table" and self.vocabulary < 1:
            raise ValueError("a table of words needs a vocabulary")

    @property
    def word_dim(self) -> int:
        return self.network.hidden if self.network is not None else self.dim

    @property
    def out(self) -> int:
        """Numbers per caption."""
        if self.pool == "vlad":
            return self.word_dim * self.clusters
        return self.lstm if self.pool == "lstm" else self.word_dim


@dataclass(frozen=True)
class FeatureModelConfig:
    """What every model of expert features has: its experts in order, and how it reads captions."""

    experts: tuple[ExpertConfig, ...]
    text: TextConfig

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(expert.name for expert in self.experts)


@dataclass(frozen=True)
class MoEEConfig(FeatureModelConfig):
    """Mixture of embedding experts (arXiv 1804.02516). `learned_weights=False` gives every expert 1/M."""

    learned_weights: bool = True
    mode: Mode = "paper"
    kind: Literal["moee"] = "moee"


@dataclass(frozen=True)
class ConcatConfig(FeatureModelConfig):
    """All experts' features end to end against the pooled caption: the first row of CE's table 6."""

    mode: Mode = "paper"
    kind: Literal["concat"] = "concat"


@dataclass(frozen=True)
class CEConfig(FeatureModelConfig):
    """Collaborative experts (arXiv 1907.13487). `gating=False` is the paper's ablation "CE − CG".

    `sequential`, `with_self` and `pairs` follow the mode unless given: released is (True, True, "mean"), the
    paper's equation (1) is (False, False, "sum").
    """

    dim: int = 768
    gating: bool = True
    g_layers: int = 3
    h_layers: int = 0
    mish: bool = True
    learned_weights: bool = True
    mode: Mode = "paper"
    sequential: bool | None = None
    with_self: bool | None = None
    pairs: Literal["sum", "mean"] | None = None
    kind: Literal["ce"] = "ce"


@dataclass(frozen=True)
class MMTConfig(FeatureModelConfig):
    """The multi-modal transformer (arXiv 2007.10639) and the other video encoders of its table 3.

    `aggregate` is how an expert's own token begins, `inputs` whether rows keep their times ("ordered"), swap
    them at random ("shuffled") or are left out ("pooled": only the aggregate tokens). `keep_missing` (all
    weights stay, missing experts too) follows the mode unless given: always in the released code, only with
    the transformer in the paper.
    """

    dim: int = 512
    encoder: Literal["mmt", "coll", "none"] = "mmt"
    aggregate: Literal["max", "mean", "zero"] = "max"
    inputs: Literal["ordered", "shuffled", "pooled"] = "ordered"
    layers: int = 4
    heads: int = 4
    inner: int = 3072
    positions: int = 32  # seconds + 2
    types: int = 19
    dropout: float = 0.1
    keep_missing: bool | None = None
    mode: Mode = "paper"
    kind: Literal["mmt"] = "mmt"

    def __post_init__(self) -> None:
        ids = [expert.type_id for expert in self.experts]
        if self.encoder == "mmt" and (len(set(ids)) != len(ids) or not all(0 < i < self.types for i in ids)):
            raise ValueError(f"each expert of MMT needs its own type_id between 1 and {self.types - 1}")

    @property
    def keeps_missing(self) -> bool:
        if self.keep_missing is not None:
            return self.keep_missing
        return self.mode == "released" or self.encoder == "mmt"


ModelConfig = MoEEConfig | ConcatConfig | CEConfig | MMTConfig
KINDS: dict[str, type[ModelConfig]] = {
    model.kind: model for model in (MoEEConfig, ConcatConfig, CEConfig, MMTConfig)
}


def to_json(config: ModelConfig) -> dict[str, Any]:
    """Return plain values that `from_json` makes the same configuration of."""
    return dataclasses.asdict(config)


def from_json(value: Mapping[str, Any]) -> ModelConfig:
    """Return a configuration from its plain values."""
    try:
        kind = KINDS[value["kind"]]
        parts = dict(value)
        parts["experts"] = tuple(ExpertConfig(**expert) for expert in value["experts"])
        text = dict(value["text"])
        if text.get("network") is not None:
            text["network"] = TransformerConfig(**text["network"])
        parts["text"] = TextConfig(**text)
        return kind(**parts)
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(
            f"the model's description cannot be read ({error}); it may be of a newer wordreel",
            NextStep("update wordreel, or train the model again"),
        ) from None
