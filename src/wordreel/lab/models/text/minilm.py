"""The embedded sentence encoder (all-MiniLM-L6-v2) as a caption network that can be trained on.

Its weights stand in the converted network in a fixed order; here they get BERT's names back. The position
table already contains segment 0, so the segment table is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wordreel.errors import WeightsError
from wordreel.lab.models.config import MINILM
from wordreel.runtime.sentences import WEIGHTS
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32

PER_LAYER = (
    "attention.self.query.weight", "attention.self.query.bias",
    "attention.self.key.weight", "attention.self.key.bias",
    "attention.self.value.weight", "attention.self.value.bias",
    "attention.output.dense.weight", "attention.output.dense.bias",
    "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
    "intermediate.dense.weight", "intermediate.dense.bias",
    "output.dense.weight", "output.dense.bias",
    "output.LayerNorm.weight", "output.LayerNorm.bias",
)  # fmt: skip


def minilm_weights(store: WeightStore | None = None) -> dict[str, Float32]:
    """Name → array, under BERT's names, pooler left at zero."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str((store or WeightStore()).file(WEIGHTS, "network.onnx"))).graph
    arrays = [numpy_helper.to_array(value) for value in graph.initializer if value.dims]
    arrays = [array for array in arrays if array.dtype == np.float32]
    names = ["embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"]
    names += ["embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"]
    names += [f"encoder.layer.{n}.{name}" for n in range(MINILM.layers) for name in PER_LAYER]
    if len(arrays) != len(names):
        raise WeightsError("the sentence encoder's network is not laid out as expected; fetch it again")
    weights: dict[str, Float32] = {}
    for name, array in zip(names, arrays, strict=True):
        turned = name.endswith(".weight") and ("attention.self" in name or ".dense." in name)
        weights[name] = np.array(array.T if turned else array, order="C")  # a writable copy
    hidden = MINILM.hidden
    weights["embeddings.token_type_embeddings.weight"] = np.zeros((MINILM.types, hidden), np.float32)
    weights["pooler.dense.weight"] = np.zeros((hidden, hidden), np.float32)
    weights["pooler.dense.bias"] = np.zeros(hidden, np.float32)
    return weights


def minilm_network(store: WeightStore | None = None, weights: Mapping[str, Float32] | None = None) -> Any:
    """A `wordreel.lab.models.text.bert.Bert` in evaluation mode, with the store's weights or with these."""
    import torch

    from wordreel.lab.models.text.bert import Bert

    network = Bert(MINILM)
    arrays = minilm_weights(store) if weights is None else weights
    network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    return network.eval()
