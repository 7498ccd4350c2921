"""all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019) as a caption network to train on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wordreel.lab.models.config import MINILM
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32

WEIGHTS = "minilm"
BUFFER = "embeddings.position_ids"  # 0, 1, 2, …


def minilm_weights(store: WeightStore | None = None) -> dict[str, Float32]:
    """Return its arrays under BERT's names."""
    from safetensors.numpy import load_file

    arrays = load_file(str((store or WeightStore()).file(WEIGHTS, "model.safetensors")))
    return {name: _read(name, array) for name, array in arrays.items() if name != BUFFER}


def _read(name: str, array: Float32) -> Float32:
    """Zeros for the pooler: sentences are means of tokens, and a pack need not carry what nothing reads."""
    return np.zeros_like(array) if name.startswith("pooler.") else array


def minilm_network(store: WeightStore | None = None, weights: Mapping[str, Float32] | None = None) -> Any:
    """Return a `wordreel.lab.models.text.bert.Bert` in evaluation mode, of a store's weights or of these."""
    import torch

    from wordreel.lab.models.text.bert import Bert

    network = Bert(MINILM)
    arrays = minilm_weights(store) if weights is None else weights
    network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    return network.eval()
