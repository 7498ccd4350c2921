"""The configuration of a published checkpoint: sizes from its arrays, everything else from its settings.

What the arrays cannot say (the order of experts, `max_tokens`, heads) comes from the trainer's configuration;
without one, from the registered model whose sizes are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from wordreel.errors import NextStep, WeightsError
from wordreel.lab.checkpoints.checkpoint_file import CONFIG, PublishedCheckpoint
from wordreel.lab.models.config import (
    CEConfig,
    ExpertConfig,
    MMTConfig,
    ModelConfig,
    MoEEConfig,
    TextConfig,
    TransformerConfig,
)
from wordreel.lab.models.registry import MODELS
from wordreel.models.conversion import Mode, MoEEOrder

TYPE_IDS = {
    "s3d": 1, "vggish": 2, "face": 3, "audio": 4, "rgb": 5, "speech": 6, "ocr": 7, "flow": 8, "scene": 9,
}  # fmt: skip
TIMED = ("s3d", "vggish", "rgb", "scene")  # experts of MMT whose rows have times
AGGREGATES: dict[str, Literal["max", "mean", "zero"]] = {"mxp": "max", "mnp": "mean", "sep": "zero"}
INPUTS: dict[str, Literal["ordered", "pooled"]] = {"both": "ordered", "agg": "pooled"}
TEXT_POOLS: dict[str, Literal["cls", "max", "mean"]] = {"": "cls", "cls": "cls", "mxp": "max", "mnp": "mean"}
MOEE_UNITS = ("face", "audio", "visual", "motion")  # the order of its table of sizes
MOEE_MIXTURE = ("audio", "face", "motion", "visual")  # the order in which it puts a video together
MOEE_SIZES = {128: "face", 2048: "visual", 1024: "motion"}
MOEE_TOKENS = 30
T = TypeVar("T")


class VideoSizes(NamedTuple):
    """The sizes of MMT's video transformer; the defaults are those of models without one."""

    layers: int = 4
    heads: int = 4
    inner: int = 3072
    positions: int = 32
    types: int = 19


def infer_config(checkpoint: PublishedCheckpoint, mode: Mode = "released") -> ModelConfig:
    """Return the configuration of a checkpoint of CE, its ablations, MoEE or MMT."""
    if checkpoint.has("moe_fc_txt."):
        return _mmt(checkpoint, mode)
    if checkpoint.has("mee."):
        return _moee(checkpoint, mode)
    if checkpoint.has("ce.moe_fc."):
        return _ce(checkpoint, mode)
    raise WeightsError(
        f"{checkpoint.path.name} is not a checkpoint of CE, MoEE or MMT: it has no ce.moe_fc, mee.moe_fc or "
        "moe_fc_txt weights"
    )


def mixture_order(checkpoint: PublishedCheckpoint, config: ModelConfig, order: MoEEOrder) -> tuple[str, ...]:
    """Return the experts in the order of the published mixture weights."""
    if order == "ordered" and checkpoint.has("mee.") and set(config.names) == set(MOEE_MIXTURE):
        return MOEE_MIXTURE
    return config.names


def _ce(checkpoint: PublishedCheckpoint, mode: Mode) -> ModelConfig:
    arrays, known = checkpoint.arrays, _registered(checkpoint)
    for name, allowed in (
        ("use_ce", ("pairwise", "", 0, False, None)),
        ("keep_missing_modalities", (False, 0)),
    ):
        value = checkpoint.setting("arch", "args", name, default=allowed[0])
        if value not in allowed:
            raise WeightsError(
                f"{checkpoint.path.name} was trained with {name}={value!r}, which is not supported"
            )
    names = checkpoint.setting("experts", "modalities") or (known.names if known else ())
    names, units = sorted(map(str, names)), len(arrays["ce.moe_fc.bias"])
    if len(names) != units:
        raise _needs_config(checkpoint, f"it has {units} experts, and nothing says which")
    reduced = checkpoint.has("ce.video_dim_reduce.")
    inputs = [_shape(checkpoint, f"ce.{'video_dim_reduce' if reduced else 'video_GU'}.{m}.fc.weight")[1]
              for m in range(units)]  # fmt: skip
    limits = checkpoint.setting("data_loader", "args", "max_tokens", default=None)
    if limits is None:
        limits = (
            {e.name: e.max_tokens for e in known.experts} | {"text": known.text.max_tokens} if known else {}
        )
    experts = tuple(
        _pooled_expert(checkpoint, name, f"pooling.{name}", size, limits)
        for name, size in zip(names, inputs, strict=True)
    )
    text = _vlad_text(checkpoint, limits, known.text.source if known else "")
    learned = not checkpoint.setting("arch", "args", "freeze_weights", default=False)
    if not reduced:
        return MoEEConfig(experts, text, learned_weights=learned, mode=mode)
    own = checkpoint.setting("arch", "args", "include_self")
    return CEConfig(
        experts,
        text,
        dim=_shape(checkpoint, "ce.video_dim_reduce.0.fc.weight")[0],
        gating=checkpoint.has("ce.g_reason_1."),
        g_layers=1 + _matrices(checkpoint, "ce.g_reason_shared."),
        h_layers=_matrices(checkpoint, "ce.h_reason."),
        mish=bool(checkpoint.setting("arch", "args", "use_mish", default=True)),
        learned_weights=learned,
        mode=mode,
        with_self=bool(own) if own is not None and mode == "released" else None,
    )


def _moee(checkpoint: PublishedCheckpoint, mode: Mode) -> MoEEConfig:
    """MoEE's own code: the checkpoint is a bare state dict; the sizes of units tell experts apart."""
    count = len(checkpoint.arrays["mee.moe_fc.bias"])
    inputs = [_shape(checkpoint, f"mee.video_GU.{m}.fc.weight")[1] for m in range(count)]
    names = tuple(checkpoint.setting("experts", "modalities") or MOEE_UNITS)
    if not checkpoint.settings and count == len(MOEE_UNITS):
        clusters = _shape(checkpoint, "audio_pooling.clusters2")
        heard = clusters[-2] * clusters[-1]
        sizes = tuple("audio" if size == heard else MOEE_SIZES.get(size, "") for size in inputs)
        if set(sizes) == set(MOEE_UNITS):
            names = sizes
    if len(names) != count:
        raise _needs_config(checkpoint, f"it has {count} experts, and nothing says which")
    limits = checkpoint.setting("data_loader", "args", "max_tokens", default={})
    limits = {"audio": MOEE_TOKENS, "text": MOEE_TOKENS} | dict(limits)
    experts = tuple(
        _pooled_expert(checkpoint, name, f"{name}_pooling", size, limits)
        for name, size in zip(names, inputs, strict=True)
    )
    return MoEEConfig(experts, _vlad_text(checkpoint, limits, "w2v"), mode=mode)


def _mmt(checkpoint: PublishedCheckpoint, mode: Mode) -> MMTConfig:
    names = sorted(_between(checkpoint.arrays, "video_dim_reduce.", ".fc.weight"))
    for name, allowed in (("txt_wgh", ("emb",)), ("vid_wgh", ("none",)), ("pos_enc", ("tint",))):
        value = checkpoint.setting("arch", "args", name, default=allowed[0])
        if value not in allowed:
            raise WeightsError(
                f"{checkpoint.path.name} was trained with {name}={value!r}, which is not supported"
            )
    if unknown := [name for name in names if name not in TYPE_IDS]:
        raise WeightsError(
            f"{checkpoint.path.name} has experts that MMT's table does not name: {', '.join(unknown)}"
        )
    encoder: Literal["mmt", "coll", "none"] = "none"
    sizes = VideoSizes()
    if checkpoint.has("vid_bert."):
        encoder = "mmt"
        sizes = VideoSizes(
            layers=1 + max(map(int, _between(checkpoint.arrays, "vid_bert.encoder.layer.", ".attention."))),
            heads=int(_vid_bert(checkpoint, "num_attention_heads", 4)),
            inner=_shape(checkpoint, "vid_bert.encoder.layer.0.intermediate.dense.weight")[0],
            positions=_shape(checkpoint, "vid_bert.embeddings.position_embeddings.weight")[0],
            types=_shape(checkpoint, "vid_bert.embeddings.token_type_embeddings.weight")[0],
        )
    elif checkpoint.has("g_reason_1."):
        encoder = "coll"
    usual = sizes.positions - 2
    words, rows = (_loader(checkpoint, key, usual) for key in ("max_text_words", "max_expert_tokens"))
    experts = tuple(
        ExpertConfig(
            name,
            _shape(checkpoint, f"video_dim_reduce.{name}.fc.weight")[1],
            max_tokens=rows,
            type_id=TYPE_IDS[name],
            timed=name in TIMED,
        )
        for name in names
    )
    return MMTConfig(
        experts,
        _bert_text(checkpoint, words),
        dim=_shape(checkpoint, f"video_dim_reduce.{names[0]}.fc.weight")[0],
        encoder=encoder,
        aggregate=_choice(checkpoint, "out_tok", AGGREGATES, "mxp"),
        inputs=_choice(checkpoint, "vid_inp", INPUTS, "both"),
        keep_missing=checkpoint.setting("arch", "args", "keep_missing_modalities")
        if mode == "released"
        else None,
        mode=mode,
        layers=sizes.layers,
        heads=sizes.heads,
        inner=sizes.inner,
        positions=sizes.positions,
        types=sizes.types,
    )


def _pooled_expert(
    checkpoint: PublishedCheckpoint, name: str, pool: str, size: int, limits: Mapping[str, Any]
) -> ExpertConfig:
    most = int(limits.get(name, 0))
    if f"{pool}.clusters" not in checkpoint.arrays:
        return ExpertConfig(name, size)
    dim, clusters = _shape(checkpoint, f"{pool}.clusters2")[-2:]
    if dim * clusters != size:
        raise _needs_config(checkpoint, f"{name} has {dim} × {clusters} numbers where the model takes {size}")
    return ExpertConfig(
        name, dim, "vlad", clusters, _shape(checkpoint, f"{pool}.clusters")[1] - clusters, most
    )


def _vlad_text(checkpoint: PublishedCheckpoint, limits: Mapping[str, Any], source: str) -> TextConfig:
    if "text_pooling.clusters2" not in checkpoint.arrays:
        raise WeightsError(
            f"{checkpoint.path.name} does not pool captions by NetVLAD, which is not supported"
        )
    dim, clusters = _shape(checkpoint, "text_pooling.clusters2")[-2:]
    ghosts = _shape(checkpoint, "text_pooling.clusters")[1] - clusters
    source = str(checkpoint.setting("experts", "text_feat", default=source))
    if not limits.get("text"):
        raise _needs_config(checkpoint, "nothing says how many words of a caption it reads")
    return TextConfig("vectors", dim, "vlad", clusters, ghosts, max_tokens=int(limits["text"]), source=source)


def _bert_text(checkpoint: PublishedCheckpoint, words: int) -> TextConfig:
    if not checkpoint.has("txt_bert."):
        raise WeightsError(f"{checkpoint.path.name} does not read captions with BERT, which is not supported")
    match = re.fullmatch(
        r"bert(ftn|frz)\d*(cls|mxp|mnp|)",
        str(checkpoint.setting("arch", "args", "txt_agg", default="bertftn")),
    )
    if match is None:
        raise WeightsError(
            f"{checkpoint.path.name} gathers the words of a caption in a way that is not supported"
        )
    vocabulary, hidden = _shape(checkpoint, "txt_bert.embeddings.word_embeddings.weight")
    heads = checkpoint.setting(
        "arch", "args", "txt_bert_params", "num_attention_heads", default=max(1, hidden // 64)
    )
    network = TransformerConfig(
        vocabulary,
        hidden,
        1 + max(map(int, _between(checkpoint.arrays, "txt_bert.encoder.layer.", ".attention."))),
        int(heads),
        _shape(checkpoint, "txt_bert.encoder.layer.0.intermediate.dense.weight")[0],
        _shape(checkpoint, "txt_bert.embeddings.position_embeddings.weight")[0],
        _shape(checkpoint, "txt_bert.embeddings.token_type_embeddings.weight")[0],
    )
    frozen, pool = match[1] == "frz", TEXT_POOLS[match[2]]
    return TextConfig(
        "bert", hidden, pool, network=network, frozen=frozen, max_tokens=words, source="wordpiece"
    )


def _registered(checkpoint: PublishedCheckpoint) -> CEConfig | MoEEConfig | None:
    """Return the registered model with the sizes of a checkpoint of the CE code."""
    shapes = {key: value.shape for key, value in checkpoint.arrays.items()}
    for entry in MODELS.values():
        config = entry.make()
        if not isinstance(config, CEConfig | MoEEConfig):
            continue
        unit = "video_dim_reduce" if isinstance(config, CEConfig) else "video_GU"
        wanted = {
            **{f"ce.{unit}.{m}.fc.weight": expert.pooled for m, expert in enumerate(config.experts)},
            "ce.moe_fc.weight": config.text.out,
        }
        if shapes.get("ce.moe_fc.bias") == (len(config.experts),) and all(
            shapes.get(key, (0, 0))[1] == size for key, size in wanted.items()
        ):
            return config
    return None


def _shape(checkpoint: PublishedCheckpoint, key: str) -> tuple[int, ...]:
    if key not in checkpoint.arrays or checkpoint.arrays[key].ndim < 2:
        raise WeightsError(f"{checkpoint.path.name} is not whole: it has no {key}")
    return tuple(checkpoint.arrays[key].shape)


def _matrices(checkpoint: PublishedCheckpoint, start: str) -> int:
    """Linear layers under a name."""
    return sum(key.startswith(start) and value.ndim == 2 for key, value in checkpoint.arrays.items())


def _between(keys: Iterable[str], start: str, end: str) -> set[str]:
    return {
        key[len(start) : key.index(end, len(start))] for key in keys if key.startswith(start) and end in key
    }


def _vid_bert(checkpoint: PublishedCheckpoint, name: str, default: int) -> Any:
    return checkpoint.setting("arch", "args", "vid_bert_params", name, default=default)


def _loader(checkpoint: PublishedCheckpoint, key: str, default: int) -> int:
    """Return a setting of the first dataset that names it."""
    for sets in ("train_sets", "continuous_eval_sets", "final_eval_sets"):
        for one in checkpoint.setting(sets, default=()):
            for part in one.get("args", {}).get("mix", ()):
                if key in part:
                    return int(part[key])
    return default


def _choice(checkpoint: PublishedCheckpoint, name: str, known: Mapping[str, T], default: str) -> T:
    value = str(checkpoint.setting("arch", "args", name, default=default))
    if value not in known:
        raise WeightsError(
            f"{checkpoint.path.name} was trained with {name}={value!r}, which is not supported"
        )
    return known[value]


def _needs_config(checkpoint: PublishedCheckpoint, why: str) -> WeightsError:
    return WeightsError(
        f"{checkpoint.path.name} needs its configuration: {why}",
        NextStep(f"give the {CONFIG} of the training run", f"use {checkpoint.path.name} --config {CONFIG}"),
    )
