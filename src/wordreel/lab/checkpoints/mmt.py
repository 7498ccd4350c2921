"""Checkpoints of the multi-modal transformer's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from wordreel.lab.checkpoints.published_arrays import PublishedArrays
from wordreel.lab.models.build import build
from wordreel.lab.models.config import MMTConfig
from wordreel.lab.models.mmt import MMT


def load_mmt(arrays: Mapping[str, NDArray[Any]], config: MMTConfig) -> MMT:
    """Return a module with a checkpoint's weights, for evaluation.

    `mode="released"` gives the published numbers.

    A table of times shorter than `config.positions` is filled up with zeros, as for fine-tuning.
    """
    published = PublishedArrays(arrays)
    module = build(config)
    assert isinstance(module, MMT)  # noqa: S101 - for the type checker
    capital = "text_GU" if published.has("text_GU.") else "text_gu"
    state = published.units("text", [f"{capital}.{name}" for name in config.names])
    for part in ("weight", "bias"):
        rows = [published.take(f"moe_fc_txt.{name}.{part}") for name in config.names]
        state[f"mixture.{part}"] = torch.cat(rows)
    for number, name in enumerate(config.names):
        state |= published.linear(f"project.{number}", f"video_dim_reduce.{name}.fc")
    state |= _caption(published, module)
    if config.encoder == "mmt":
        state |= _transformer(published, module, config.positions)
    elif config.encoder == "coll":
        state |= _pairs(published, config)
    published.fill(module, state)
    return module.eval()


def _caption(published: PublishedArrays, module: MMT) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    caption = module.caption
    if caption.vlad is not None:
        state |= published.vlad("caption.vlad", "text_pooling")
    if caption.lstm is not None:
        for name in caption.lstm.state_dict():
            state[f"caption.lstm.{name}"] = published.take(f"text_pooling.{name}")
    if caption.text.words == "table":
        state["caption.words.weight"] = published.take("word_embeddings.word_embeddings.weight")
    elif caption.words is not None:
        state |= bert_state(published, list(caption.words.state_dict()), "caption.words.", "txt_bert.")
    return state


def bert_state(published: PublishedArrays, names: list[str], here: str, there: str) -> dict[str, Tensor]:
    """Return a transformer's arrays by our names.

    Norms are LayerNorm or layer_norm, their parts weight/bias or gamma/beta.
    """
    state = {}
    for name in names:
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        small = name.replace("LayerNorm", "layer_norm")
        state[here + name] = published.take(there + name, there + small, there + old)
    return state


def _transformer(published: PublishedArrays, module: MMT, positions: int) -> dict[str, Tensor]:
    assert module.transformer is not None  # noqa: S101 - for the type checker
    names = list(module.transformer.state_dict())
    tables = [name for name in names if not name.startswith(("encoder.", "pooler."))]
    others = [name for name in names if name not in tables]
    state = bert_state(published, tables, "transformer.", "vid_bert.embeddings.")
    state |= bert_state(published, others, "transformer.", "vid_bert.")
    times = "transformer.position_embeddings.weight"
    missing = positions - len(state[times])
    if missing > 0 and state[times].ndim == 2:
        state[times] = torch.cat((state[times], state[times].new_zeros(missing, state[times].shape[1])))
    return state


def _pairs(published: PublishedArrays, config: MMTConfig) -> dict[str, Tensor]:
    capital = "video_GU" if published.has("video_GU.") else "video_gu"
    videos = [f"{capital}.{name}" for name in config.names]
    state = published.gates("pairs.gates", videos, "batch_norm2")
    state |= published.norm("pairs.attention_norms", *(f"{at}.cg.batch_norm" for at in videos))
    for here, there in (
        ("g1", "g_reason_1"),
        ("g2", "g_reason_2"),
        ("f1", "f_reason_1"),
        ("f2", "f_reason_2"),
    ):
        state |= published.linear(f"pairs.{here}", there)
    state |= published.linear("pairs.unused.0", "f_reason_3")
    for number, name in enumerate(("g1", "g2", "f1", "f2")):
        state |= published.norm(f"pairs.unused.{number + 1}", f"batch_norm_{name}")
    return state
