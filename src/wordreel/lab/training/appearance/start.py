"""The published weights that training starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from wordreel.errors import TrainingError
from wordreel.lab.models.appearance.efficientnet_lite import EfficientNetLite
from wordreel.runtime.store import WeightStore
from wordreel.runtime.torch_files.torch_file import read_state_dict

WEIGHTS = "efficientnet-lite2-checkpoint"
COUNTERS = "num_batches_tracked"


def published_weights(store: WeightStore | None = None) -> dict[str, NDArray[Any]]:
    """EfficientNet-Lite2 with its batch norms, by the published names; downloaded where it is not here."""
    weights = store or WeightStore()
    weights.fetch(WEIGHTS)
    return dict(read_state_dict(weights.file(WEIGHTS)))


def init_network(network: EfficientNetLite, start: Mapping[str, NDArray[Any]]) -> None:
    """Fill in the network's weights, except for counters of batches, which nothing uses."""
    state = network.state_dict()
    for name, value in state.items():
        if name.endswith(COUNTERS):
            continue
        if name not in start or start[name].shape != tuple(value.shape):
            raise TrainingError(f"these weights are not of the recipe's network ({name})")
        state[name] = torch.from_numpy(start[name].copy()).to(value.dtype)
    network.load_state_dict(state)
