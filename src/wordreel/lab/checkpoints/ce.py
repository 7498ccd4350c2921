"""Checkpoints of the collaborative-experts code: CE, its ablations, and its MoEE; and of MoEE's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from wordreel.lab.checkpoints.published_arrays import PublishedArrays
from wordreel.lab.models import config as configs
from wordreel.lab.models.batch import JointEmbedding
from wordreel.lab.models.build import build

LEGACY = ("ce.moe_fc_bottleneck1", "ce.moe_cg", "ce.moe_fc_proj")  # written once, never used


def load_ce(
    arrays: Mapping[str, NDArray[Any]],
    config: configs.CEConfig | configs.MoEEConfig | configs.ConcatConfig,
    mixture_order: Sequence[str] | None = None,
) -> JointEmbedding:
    """Return a module with a checkpoint's weights, for evaluation.

    `mode="released"` gives the published numbers.

    `mixture_order` names the experts in the order of the published mixture weights, where it is another.
    """
    published = PublishedArrays(arrays, LEGACY)
    module = build(config)
    inner = "mee" if published.has("mee.") else "ce"
    state = _pools(published, config) | published.linear("mixture.fc", f"{inner}.moe_fc")
    if mixture_order is not None:
        rows = [list(mixture_order).index(name) for name in config.names]
        state |= {key: state[key][rows] for key in ("mixture.fc.weight", "mixture.fc.bias")}
    if config.text.pool == "vlad":
        state |= published.vlad("caption.vlad", "text_pooling")
    texts = [f"{inner}.text_GU.{number}" for number in range(len(config.experts))]
    videos = [f"{inner}.video_GU.{number}" for number in range(len(config.experts))]
    if isinstance(config, configs.CEConfig):
        state |= published.units("text", texts)
        state |= _video(published, config, videos)
    elif isinstance(config, configs.MoEEConfig):
        for number, (text, video) in enumerate(zip(texts, videos, strict=True)):
            state |= published.unit(f"text.units.{number}", text)
            state |= published.unit(f"video.units.{number}", video)
    published.fill(module, state)
    return module.eval()


def _pools(published: PublishedArrays, config: configs.ModelConfig) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for number, expert in enumerate(config.experts):
        if expert.pool == "vlad":
            own = f"{expert.name}_pooling"  # MoEE's own code
            there = own if published.has(own) else f"pooling.{expert.name}"
            state |= published.vlad(f"pooling.pools.{number}", there)
    return state


def _video(published: PublishedArrays, config: configs.CEConfig, videos: list[str]) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for number in range(len(videos)):
        state |= published.linear(f"project.{number}", f"ce.video_dim_reduce.{number}.fc")
    if not config.gating:
        return state | published.gates("gating", videos, "batch_norm")
    state |= published.linear("gating.first", "ce.g_reason_1")
    for ours, theirs, layers in (
        ("g", "g_reason_shared", config.g_layers - 1),
        ("h", "h_reason", config.h_layers),
    ):
        for layer in range(layers):  # batch norm, activation, linear
            state |= published.norm(f"gating.{ours}.norms.{layer}", f"ce.{theirs}.{3 * layer}")
            state |= published.linear(f"gating.{ours}.linears.{layer}", f"ce.{theirs}.{3 * layer + 2}")
    state |= published.gates("gating.gates", videos, "batch_norm2")
    return state | published.norm("gating.attention_norms", *(f"{at}.cg.batch_norm" for at in videos))
