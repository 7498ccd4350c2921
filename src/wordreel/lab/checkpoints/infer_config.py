"""The configuration of a published checkpoint: sizes from its arrays, everything else from its settings.

What the arrays cannot say (the order of experts, `max_tokens`, heads) comes from the trainer's configuration;
without one, from the registered model whose sizes are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from wordreel.lab.checkpoints.checkpoint_file import PublishedCheckpoint
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
from wordreel.models.laboratory import Mode, MoEEOrder

TYPE_IDS = {
    "s3d": 1, "vggish": 2, "face": 3, "audio": 4, "rgb": 5, "speech": 6, "ocr": 7, "flow": 8, "scene": 9,
}  # fmt: skip
TIMED = ("s3d", "vggish", "rgb", "scene")  # experts of MMT whose rows have times
AGGREGATES: dict[str, Literal["max", "mean", "zero"]] = {"mxp": "max", "mnp": "mean", "sep": "zero"}
INPUTS: dict[str, Literal["ordered", "pooled"]] = {"both": "ordered", "agg": "pooled"}
TEXT_POOLS: dict[str, Literal["cls", "max", "mean"]] = {"": "cls", "cls": "cls", "mxp": "max", "mnp": "mean"}
NO_TRANSFORMER = TransformerConfig(layers=4, heads=4, inner=3072, positions=32, types=19)
MOEE_UNITS = ("face", "audio", "visual", "motion")  # the order of its table of sizes
MOEE_MIXTURE = ("audio", "face", "motion", "visual")  # the order in which it puts a video together
MOEE_SIZES = {128: "face", 2048: "visual", 1024: "motion"}
MOEE_TOKENS = 30


def infer_config(checkpoint: PublishedCheckpoint, mode: Mode = "released") -> ModelConfig:
    """Return the configuration of a checkpoint of CE, its ablations, MoEE or MMT."""
    if checkpoint.has("moe_fc_txt."):
        return _mmt(checkpoint, mode)
    if checkpoint.has("mee."):
        return _moee(checkpoint, mode)
    if checkpoint.has("ce.moe_fc."):
        return _ce(checkpoint, mode)
    raise checkpoint.error(
        "is not a checkpoint of CE, MoEE or MMT: it has no ce.moe_fc, mee.moe_fc or moe_fc_txt weights"
    )


def find_mixture_order(
    checkpoint: PublishedCheckpoint, config: ModelConfig, order: MoEEOrder
) -> tuple[str, ...]:
    """Return the experts in the order of the published mixture weights."""
    if order == "ordered" and checkpoint.has("mee.") and set(config.names) == set(MOEE_MIXTURE):
        return MOEE_MIXTURE
    return config.names


def _ce(checkpoint: PublishedCheckpoint, mode: Mode) -> ModelConfig:
    registered = _registered(checkpoint)
    checkpoint.choose("use_ce", dict.fromkeys(("pairwise", "", 0, False, None)), "pairwise")
    checkpoint.choose("keep_missing_modalities", {False: None}, False)
    names = checkpoint.setting("experts", "modalities") or (registered.names if registered else ())
    limits = checkpoint.setting("data_loader", "args", "max_tokens")
    if limits is None:
        limits = {}
        if registered:
            limits = {expert.name: expert.max_tokens for expert in registered.experts}
            limits["text"] = registered.text.max_tokens
    unit = "video_dim_reduce" if checkpoint.has("ce.video_dim_reduce.") else "video_GU"
    experts = _pooled_experts(checkpoint, "ce", unit, sorted(map(str, names)), "pooling.{}", limits)
    text = _vlad_text(checkpoint, limits, registered.text.source if registered else "")
    learned = not checkpoint.argument("freeze_weights", False)
    if unit == "video_GU":
        return MoEEConfig(experts, text, learned_weights=learned, mode=mode)
    with_self = checkpoint.argument("include_self")
    return CEConfig(
        experts,
        text,
        dim=checkpoint.shape("ce.video_dim_reduce.0.fc.weight")[0],
        gating=checkpoint.has("ce.g_reason_1."),
        g_layers=1 + _count_matrices(checkpoint, "ce.g_reason_shared."),
        h_layers=_count_matrices(checkpoint, "ce.h_reason."),
        mish=bool(checkpoint.argument("use_mish", True)),
        learned_weights=learned,
        mode=mode,
        with_self=bool(with_self) if with_self is not None and mode == "released" else None,
    )


def _moee(checkpoint: PublishedCheckpoint, mode: Mode) -> MoEEConfig:
    """MoEE's own code: the checkpoint is a bare state dict; the sizes of units tell experts apart."""
    names = tuple(checkpoint.setting("experts", "modalities") or MOEE_UNITS)
    inputs = _inputs(checkpoint, "mee", "video_GU")
    if not checkpoint.settings and len(inputs) == len(MOEE_UNITS):
        clusters = checkpoint.shape("audio_pooling.clusters2")
        audio_size = clusters[-2] * clusters[-1]
        by_size = tuple("audio" if size == audio_size else MOEE_SIZES.get(size, "") for size in inputs)
        if set(by_size) == set(MOEE_UNITS):
            names = by_size
    limits = checkpoint.setting("data_loader", "args", "max_tokens", default={})
    limits = {"audio": MOEE_TOKENS, "text": MOEE_TOKENS} | dict(limits)
    experts = _pooled_experts(checkpoint, "mee", "video_GU", names, "{}_pooling", limits)
    return MoEEConfig(experts, _vlad_text(checkpoint, limits, "w2v"), mode=mode)


def _mmt(checkpoint: PublishedCheckpoint, mode: Mode) -> MMTConfig:
    for name, only in (("txt_wgh", "emb"), ("vid_wgh", "none"), ("pos_enc", "tint")):
        checkpoint.choose(name, {only: None}, only)
    names = sorted(checkpoint.between("video_dim_reduce.", ".fc.weight"))
    if unknown := [name for name in names if name not in TYPE_IDS]:
        raise checkpoint.error(f"has experts that MMT's table does not name: {', '.join(unknown)}")
    encoder: Literal["mmt", "coll", "none"] = "coll" if checkpoint.has("g_reason_1.") else "none"
    transformer = NO_TRANSFORMER
    if checkpoint.has("vid_bert."):
        encoder = "mmt"
        transformer = _transformer(checkpoint, "vid_bert", checkpoint.argument("vid_bert_params"), 4)
    usual = transformer.positions - 2
    rows = _loader_setting(checkpoint, "max_expert_tokens", usual)
    experts = tuple(
        ExpertConfig(
            name,
            checkpoint.shape(f"video_dim_reduce.{name}.fc.weight")[1],
            max_tokens=rows,
            type_id=TYPE_IDS[name],
            timed=name in TIMED,
        )
        for name in names
    )
    keep_missing = checkpoint.argument("keep_missing_modalities")
    return MMTConfig(
        experts,
        _bert_text(checkpoint, _loader_setting(checkpoint, "max_text_words", usual)),
        dim=checkpoint.shape(f"video_dim_reduce.{names[0]}.fc.weight")[0],
        encoder=encoder,
        aggregate=checkpoint.choose("out_tok", AGGREGATES, "mxp"),
        inputs=checkpoint.choose("vid_inp", INPUTS, "both"),
        keep_missing=keep_missing if mode == "released" else None,
        mode=mode,
        layers=transformer.layers,
        heads=transformer.heads,
        inner=transformer.inner,
        positions=transformer.positions,
        types=transformer.types,
    )


def _inputs(checkpoint: PublishedCheckpoint, prefix: str, unit: str) -> list[int]:
    """Return the sizes of what the units take, in their order."""
    count = len(checkpoint.arrays[f"{prefix}.moe_fc.bias"])
    return [checkpoint.shape(f"{prefix}.{unit}.{number}.fc.weight")[1] for number in range(count)]


def _pooled_experts(
    checkpoint: PublishedCheckpoint,
    prefix: str,
    unit: str,
    names: Sequence[str],
    pool: str,
    limits: Mapping[str, Any],
) -> tuple[ExpertConfig, ...]:
    """Return the experts of CE or MoEE; those with clusters under the name `pool` are pooled by NetVLAD."""
    inputs = _inputs(checkpoint, prefix, unit)
    if len(names) != len(inputs):
        raise checkpoint.config_missing(f"it has {len(inputs)} experts, and nothing says which")
    experts = []
    for name, size in zip(names, inputs, strict=True):
        start = pool.format(name)
        if f"{start}.clusters" not in checkpoint.arrays:
            experts.append(ExpertConfig(name, size))
            continue
        dim, clusters, ghosts = _vlad_sizes(checkpoint, start)
        if dim * clusters != size:
            raise checkpoint.config_missing(
                f"{name} has {dim} × {clusters} numbers where the model takes {size}"
            )
        experts.append(ExpertConfig(name, dim, "vlad", clusters, ghosts, int(limits.get(name, 0))))
    return tuple(experts)


def _vlad_sizes(checkpoint: PublishedCheckpoint, start: str) -> tuple[int, int, int]:
    """Return the dimensions, clusters and ghost clusters of a NetVLAD."""
    dim, clusters = checkpoint.shape(f"{start}.clusters2")[-2:]
    return dim, clusters, checkpoint.shape(f"{start}.clusters")[1] - clusters


def _vlad_text(checkpoint: PublishedCheckpoint, limits: Mapping[str, Any], source: str) -> TextConfig:
    if "text_pooling.clusters2" not in checkpoint.arrays:
        raise checkpoint.error("does not pool captions by NetVLAD, which is not supported")
    if not limits.get("text"):
        raise checkpoint.config_missing("nothing says how many words of a caption it reads")
    dim, clusters, ghosts = _vlad_sizes(checkpoint, "text_pooling")
    source = str(checkpoint.setting("experts", "text_feat", default=source))
    return TextConfig("vectors", dim, "vlad", clusters, ghosts, max_tokens=int(limits["text"]), source=source)


def _bert_text(checkpoint: PublishedCheckpoint, words: int) -> TextConfig:
    if not checkpoint.has("txt_bert."):
        raise checkpoint.error("does not read captions with BERT, which is not supported")
    match = re.fullmatch(r"bert(ftn|frz)\d*(cls|mxp|mnp|)", str(checkpoint.argument("txt_agg", "bertftn")))
    if match is None:
        raise checkpoint.error("gathers the words of a caption in a way that is not supported")
    hidden = checkpoint.shape("txt_bert.embeddings.word_embeddings.weight")[1]
    settings = checkpoint.argument("txt_bert_params")
    network = _transformer(checkpoint, "txt_bert", settings, max(1, hidden // 64))
    frozen, pool = match[1] == "frz", TEXT_POOLS[match[2]]
    return TextConfig(
        "bert", hidden, pool, network=network, frozen=frozen, max_tokens=words, source="wordpiece"
    )


def _transformer(
    checkpoint: PublishedCheckpoint, start: str, settings: Any, usual_heads: int
) -> TransformerConfig:
    """Return the sizes of a BERT; how many heads it has, only the trainer's settings tell."""
    tables = f"{start}.embeddings"
    name = "word" if checkpoint.has(f"{tables}.word_embeddings.") else "position"  # MMT's has no words
    vocabulary, hidden = checkpoint.shape(f"{tables}.{name}_embeddings.weight")
    heads = settings.get("num_attention_heads") if isinstance(settings, Mapping) else None
    return TransformerConfig(
        vocabulary,
        hidden,
        1 + max(map(int, checkpoint.between(f"{start}.encoder.layer.", ".attention."))),
        int(heads or usual_heads),
        checkpoint.shape(f"{start}.encoder.layer.0.intermediate.dense.weight")[0],
        checkpoint.shape(f"{tables}.position_embeddings.weight")[0],
        checkpoint.shape(f"{tables}.token_type_embeddings.weight")[0],
    )


def _registered(checkpoint: PublishedCheckpoint) -> CEConfig | MoEEConfig | None:
    """Return the registered model with the sizes of a checkpoint of the CE code."""
    shapes = {key: value.shape for key, value in checkpoint.arrays.items()}
    for entry in MODELS.values():
        config = entry.make()
        if not isinstance(config, CEConfig | MoEEConfig):
            continue
        unit = "video_dim_reduce" if isinstance(config, CEConfig) else "video_GU"
        wanted = {f"ce.{unit}.{m}.fc.weight": expert.pooled for m, expert in enumerate(config.experts)}
        wanted["ce.moe_fc.weight"] = config.text.out
        if shapes.get("ce.moe_fc.bias") == (len(config.experts),) and all(
            shapes.get(key, (0, 0))[1] == size for key, size in wanted.items()
        ):
            return config
    return None


def _count_matrices(checkpoint: PublishedCheckpoint, start: str) -> int:
    return sum(key.startswith(start) and value.ndim == 2 for key, value in checkpoint.arrays.items())


def _loader_setting(checkpoint: PublishedCheckpoint, key: str, default: int) -> int:
    """Return a setting of the first dataset that names it."""
    for group in ("train_sets", "continuous_eval_sets", "final_eval_sets"):
        for dataset in checkpoint.setting(group, default=()):
            for part in dataset.get("args", {}).get("mix", ()):
                if key in part:
                    return int(part[key])
    return default
