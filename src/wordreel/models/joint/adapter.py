"""The adapter: a linear map from the eyes' embeddings into the space of the text tower.

    seen = unit(A v + b),   v = unit(Σ seconds · unit(row))     over the rows of a clip

`joint.safetensors` holds `adapter [512, 512]` and `adapter_bias [512]`; the `card` in its metadata says what
it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.models.joint.text_tower import DIM, FOLDER
from wordreel.models.pooling import unit
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.runtime.stamped_hash import sha256_of
from wordreel.types import Float32

FILE = FOLDER / "joint.safetensors"
CARD = "card"  # key of the metadata
WEIGHT, BIAS = "adapter", "adapter_bias"


@dataclass(frozen=True, eq=False)
class Adapter:
    """`weight [512, 512]`, `bias [512]`, the card, and the hash of the file."""

    weight: Float32
    bias: Float32
    card: Mapping[str, Any]
    digest: str

    def __call__(self, rows: Float32) -> Float32:
        """Return the unit rows `[n, 512]` of embeddings `[n, 512]` in the space of the text tower."""
        return unit(unit(rows) @ self.weight.T + self.bias)


def read_adapter(path: Path, stamps: Path) -> Adapter:
    """Return the adapter of a file; `stamps` is where hashes of files are cached."""
    try:
        about, arrays = map_safetensors(path)
        card = json.loads(about[CARD])
        weight, bias = (arrays[name].astype(np.float32) for name in (WEIGHT, BIAS))
        if weight.shape != (DIM, DIM) or bias.shape != (DIM,) or not isinstance(card, dict):
            raise ValueError(f"its adapter has the shape {weight.shape}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise ValueError("it holds numbers that are not finite")
        return Adapter(weight, bias, card, sha256_of(path, stamps))
    except (KeyError, ValueError, TypeError, RecursionError, OSError) as error:
        raise WeightsCorrupt(
            f"{path} is not an adapter of the default model ({error})", NextStep("install wordreel again")
        ) from None


def write_adapter(path: Path, weight: Float32, bias: Float32, card: Mapping[str, Any]) -> None:
    """Write the file."""
    from safetensors.numpy import save_file

    arrays = {WEIGHT: weight.astype(np.float16), BIAS: bias.astype(np.float16)}
    save_file(arrays, str(path), {CARD: json.dumps(dict(card), sort_keys=True)})


def is_adapter(path: Path) -> bool:
    """Return whether a weight file holds an adapter."""
    try:
        about, arrays = map_safetensors(path)
    except (OSError, ValueError):
        return False
    return CARD in about and WEIGHT in arrays
