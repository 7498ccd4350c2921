"""How much of an embedding half precision and 8-bit weights cost: 1 − cosine against float32."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.towers import TOWERS, write_towers
from wordreel.runtime.nets.checkpoint import Array
from wordreel.runtime.sessions import Network
from wordreel.types import Float32

SAMPLES = 16
COARSE = 8  # pixels to a side of the sample pictures before they are enlarged


@dataclass(frozen=True)
class CosineLoss:
    """1 − cosine between the embeddings of two towers, over the samples."""

    mean: float
    worst: float


def precision_loss(
    config: BackboneConfig, state: Mapping[str, Array], folder: Path, frames: Float32 | None = None
) -> dict[str, CosineLoss]:
    """The loss of the towers in `folder` against float32 ones of the same weights, as "image" and "text".

    Sample pictures are squares of random colours unless `frames [n, 3, size, size]` are given; sample texts
    are random ids.
    """
    pictures, ids = samples(config)
    inputs = {"image": {"frames": pictures if frames is None else frames}, "text": {"ids": ids}}
    with tempfile.TemporaryDirectory(dir=folder.parent) as exact:
        write_towers(config, state, Path(exact))
        return {
            name: cosine_loss(
                *(Network(at / f"{name}.onnx")(**inputs[name])["features"] for at in (Path(exact), folder))
            )
            for name in TOWERS
        }


def cosine_loss(exact: Float32, other: Float32) -> CosineLoss:
    """Between matching rows.

    >>> cosine_loss(np.eye(2, dtype=np.float32), np.array([[2, 0], [1, 1]], np.float32))
    CosineLoss(mean=0.1464..., worst=0.2928...)
    """
    first, second = (np.asarray(rows, np.float64) for rows in (exact, other))
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    losses = 1 - (first * second).sum(axis=1) / np.maximum(lengths, 1e-30)
    return CosineLoss(float(losses.mean()), float(losses.max()))


def samples(config: BackboneConfig, count: int = SAMPLES) -> tuple[Float32, Array]:
    """`frames [count, 3, size, size]` of coloured squares, and `ids [count, length]`, ended and padded."""
    rng = np.random.default_rng(0)
    coarse = rng.normal(size=(count, 3, COARSE, COARSE)).astype(np.float32)
    nearest = np.arange(config.vision.size) * COARSE // config.vision.size
    text = config.text
    end = text.end_token if text.end_token >= 0 else text.vocabulary - 1
    ids = rng.integers(1, end, (count, text.length))
    for row, length in enumerate(rng.integers(min(4, text.length - 1), text.length, count)):
        ids[row, length:] = config.tokenizer.padding
        ids[row, length] = end
    return coarse[:, :, nearest][:, :, :, nearest], ids
