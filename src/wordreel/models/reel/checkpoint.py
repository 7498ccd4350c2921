"""The model's weights as one safetensors file: matrices as bytes with a scale per row, the rest as float16.

    W[i, j] ≈ scale[i] · q[i, j],   scale[i] = max |W[i]| / 127

Parts: `tower.…` (both sides), `encoder.…` (the layers of the sentence encoder that were trained further), and
`scale.…` (mean and deviation of each expert's rows). The header says what it was trained on.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.atomic import atomic_write
from wordreel.errors import WeightsCorrupt, WeightsMissing
from wordreel.types import Float32

FORMAT = 1
BYTES, SCALES = "/bytes", "/scales"
KEY = "reel"  # of the header
TUNED = "tuned"  # of the card of a model that was tuned: what it was tuned with
SHIPPED = Path(__file__).parent / "reel.safetensors"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Arrays by part, and the card: data, settings, figures."""

    tower: dict[str, Float32]
    encoder: dict[str, Float32]
    scale: dict[str, Float32]
    card: dict[str, Any]
    digest: str = ""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write it as a whole or not at all."""
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for part in ("tower", "encoder", "scale"):
        for name, array in getattr(checkpoint, part).items():
            if quantised(array):
                small, scales = to_small(array)
                arrays[f"{part}.{name}{BYTES}"], arrays[f"{part}.{name}{SCALES}"] = small, scales
            else:
                arrays[f"{part}.{name}"] = array.astype(np.float16)
    about = {"format": FORMAT, **checkpoint.card}
    atomic_write(path, to_bytes(arrays, metadata={KEY: json.dumps(about, sort_keys=True)}))


def load(path: Path = SHIPPED) -> Checkpoint:
    """Read it back as float32."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise WeightsMissing(f"there is no model at {path}; `wordreel train default` makes one")
    try:
        with safe_open(str(path), framework="numpy") as file:
            card = json.loads((file.metadata() or {})[KEY])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise WeightsCorrupt(
            f"{path} is not a model of this kind ({error}); install wordreel again"
        ) from None
    if card.get("format") != FORMAT:
        raise WeightsCorrupt(f"{path} has format {card.get('format')}, this program reads {FORMAT}")
    parts: dict[str, dict[str, Float32]] = {"tower": {}, "encoder": {}, "scale": {}}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        if rest.endswith(BYTES):
            rest = rest.removesuffix(BYTES)
            parts[part][rest] = from_small(array, arrays[f"{part}.{rest}{SCALES}"])
        elif not rest.endswith(SCALES):
            parts[part][rest] = array.astype(np.float32)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Checkpoint(parts["tower"], parts["encoder"], parts["scale"], card, digest)


def quantised(array: Float32) -> bool:
    """Whether an array is kept as bytes: large matrices are."""
    return array.ndim == 2 and array.size > 10_000


def to_small(array: Float32) -> tuple[np.ndarray[Any, np.dtype[np.int8]], Float32]:
    """Bytes and a scale per row."""
    scales = np.maximum(np.abs(array).max(axis=1), 1e-12) / 127
    return np.rint(array / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def from_small(small: np.ndarray[Any, Any], scales: Float32) -> Float32:
    return np.asarray(small.astype(np.float32) * scales[:, None], np.float32)
