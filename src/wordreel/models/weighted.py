"""A zero-shot model whose mixture weights were chosen on captions, as a checkpoint of a few bytes.

The file holds `weights [rows]`; its header names the backbone and how the weights were chosen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.backbones.backbone import Backbone
from wordreel.errors import WeightsCorrupt
from wordreel.models.base import CheckpointModel
from wordreel.models.zero_shot import WEIGHTS, ZeroShot
from wordreel.runtime.store import WeightStore

HEADER = "wordreel.zero_shot"  # metadata key of the file
BACKBONE = "backbone"  # key of the card: the backbone's name


class WeightedZeroShot(ZeroShot, CheckpointModel):
    """A `ZeroShot` with weights of its own."""

    def __init__(
        self,
        store: WeightStore,
        backbone: Backbone,
        expert_fingerprint: str,
        path: Path,
    ) -> None:
        card, weights = read_weights(path)
        super().__init__(store, backbone, expert_fingerprint, weights)
        self.folder = path.parent
        self.name = str(card["name"])
        self._card = card

    @property
    def facts(self) -> Mapping[str, Any]:
        return self._card


def write_weights(path: Path, card: Mapping[str, Any], weights: Mapping[str, float]) -> None:
    """Write the file; `card` has at least `name` and `backbone`."""
    from safetensors.numpy import save_file

    rows = np.array([weights[row] for row in WEIGHTS], np.float32)
    save_file({"weights": rows}, str(path), {HEADER: json.dumps(dict(card), sort_keys=True)})


def read_weights(path: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """The card and the weights by row."""
    from safetensors import safe_open

    card = read_card(path)
    if card is None:
        raise WeightsCorrupt(f"{path} does not hold the weights of a backbone's model")
    with safe_open(str(path), "numpy") as file:
        rows = file.get_tensor("weights")
    if rows.shape != (len(WEIGHTS),) or not (np.isfinite(rows).all() and (rows >= 0).all() and rows.any()):
        raise WeightsCorrupt(f"{path} does not hold {len(WEIGHTS)} weights")
    return card, dict(zip(WEIGHTS, rows.astype(float).round(6).tolist(), strict=True))


def read_card(path: Path) -> dict[str, Any] | None:
    """The card in a file's header; None if it is not such a file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "numpy") as file:
            card = json.loads((file.metadata() or {})[HEADER])
    except (SafetensorError, OSError, ValueError, KeyError, TypeError):
        return None
    return card if isinstance(card, dict) and {"name", BACKBONE} <= set(card) else None
