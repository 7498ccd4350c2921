"""Published weights of text networks: a folder with `model.safetensors` or `pytorch_model.bin`, or MiniLM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from wordreel.errors import WeightsError, WeightsMissing
from wordreel.lab.models.config import MINILM, TransformerConfig
from wordreel.lab.models.text.bert import Bert
from wordreel.lab.models.text.tokenizers import MINILM_PACKAGE
from wordreel.runtime.store import WeightStore
from wordreel.runtime.torch_file import read_state_dict
from wordreel.types import Float32

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
POSITIONS = "embeddings.position_ids"  # 0, 1, 2, …
TextNetwork = Literal["bert", "gpt", "gpt2"]
KINDS: dict[str, TextNetwork] = {"openai-gpt": "gpt", "gpt2": "gpt2", "bert": "bert"}


def minilm_weights(store: WeightStore | None = None) -> dict[str, Float32]:
    """Return the arrays of all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019) under BERT's names.

    The pooler is zeros: sentences are means of tokens, and a pack need not carry what nothing reads.
    """
    from safetensors.numpy import load_file

    arrays = load_file(str((store or WeightStore()).file(MINILM_PACKAGE, "model.safetensors")))
    unread = [name for name in arrays if name.startswith("pooler.")]
    del arrays[POSITIONS]
    return {**arrays, **{name: np.zeros_like(arrays[name]) for name in unread}}


def minilm_network(store: WeightStore | None = None) -> Bert:
    """Return MiniLM in evaluation mode."""
    network = Bert(MINILM)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in minilm_weights(store).items()})
    return network.eval()


def load_pretrained(network: nn.Module, source: str) -> None:
    """Fill a text network with published weights.

    Args:
        network: A `Bert` or `Gpt` of `wordreel.lab.models.text.bert`.
        source: "minilm", or a folder as Hugging Face publishes it.

    Raises:
        WeightsMissing: The folder has no weights.
        WeightsError: The weights are of another network.
    """
    if source == MINILM_PACKAGE:
        held = {name: torch.from_numpy(array) for name, array in minilm_weights().items()}
    else:
        held = _read(Path(source).expanduser())
    state: dict[str, Tensor] = {}
    for name, value in network.state_dict().items():
        tensor = _named(held, name)
        if tensor is None and "pooler" in name:
            tensor = value
        if tensor is None or tensor.shape != value.shape:
            shape = "missing" if tensor is None else f"{tuple(tensor.shape)} instead of {tuple(value.shape)}"
            raise WeightsError(f"the text weights of {source} do not fit: {name} is {shape}")
        state[name] = tensor.to(value.dtype)
    network.load_state_dict(state)


def read_network_size(folder: Path) -> tuple[TextNetwork, TransformerConfig]:
    """Return what a folder's `config.json` describes: "gpt", "gpt2" or "bert", and its size."""
    try:
        description: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = KINDS[description["model_type"]]
        hidden = int(description["hidden_size" if kind == "bert" else "n_embd"])
        inner = (
            description["intermediate_size"] if kind == "bert" else description.get("n_inner") or 4 * hidden
        )
        return kind, TransformerConfig(
            vocabulary=int(description["vocab_size"]),
            hidden=hidden,
            layers=int(description["num_hidden_layers" if kind == "bert" else "n_layer"]),
            heads=int(description["num_attention_heads" if kind == "bert" else "n_head"]),
            inner=int(inner),
            positions=int(description["max_position_embeddings" if kind == "bert" else "n_positions"]),
            types=int(description.get("type_vocab_size", 2)) if kind == "bert" else 0,
        )
    except OSError:
        raise WeightsMissing(
            f"{folder} has no config.json; give the folder of a GPT, GPT-2 or BERT"
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(
            f"{folder}/config.json does not describe a GPT, GPT-2 or BERT: {error!r}"
        ) from None


def _read(folder: Path) -> dict[str, Tensor]:
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise WeightsMissing(
            f"{folder} has no {' or '.join(WEIGHTS)}; give the folder of a published network"
        )
    return {name: torch.tensor(array) for name, array in read_state_dict(path).items()}


def _named(held: dict[str, Tensor], name: str) -> Tensor | None:
    """Rename published weights.

    "bert." and "transformer." stand before names, and old ones say gamma and beta.
    """
    old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    for prefix in ("", "bert.", "transformer."):
        for one in (name, old):
            if prefix + one in held:
                return held[prefix + one]
    return None
