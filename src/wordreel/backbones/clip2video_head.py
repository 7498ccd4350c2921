"""CLIP2Video's head (arXiv 2106.11097) over a clip's frame embeddings, in NumPy: search needs no torch.

Its similarity w · cos(c, g) + (1 − w) · cos(c', g') compares two vectors of a caption with two of a video:
global ones, and those of the alignment block. One inner product of them end to end gives the same:

    video [√w g, √(1 − w) g'],   caption [√w c, √(1 − w) c']

`lab/models/clip/clip2video.py` is what is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.numpy_blocks import (
    Blocks,
    Weights,
    block_shapes,
    mean_of_units,
    sigmoid,
    softmax,
    unit,
)
from wordreel.runtime.nets.checkpoint import Shape
from wordreel.types import Bool, Float32

POSITIONS, TYPES = "frame_position_embeddings.weight", "type_position_embeddings.weight"
WEIGHTS, CENTRES = "weight_center", "emb_center"
MATRIX, NORM = "frame2t_projection", "trans_layernorm"
GLOBAL, ALIGNED, DIFFERENCES = (
    "transformerClip.resblocks",
    "actionClip.resblocks",
    "frame2t_attention.resblocks",
)
FRAME, DIFFERENCE = 1, 0  # rows of the types
NORM_EPSILON = 1e-5


def clip2video_shapes(weights: Weights, dim: int, layers: int) -> dict[str, Shape]:
    """The key and shape of every weight; lengths of tables and what differences go through are the file's."""
    centres = row_count(weights, CENTRES)
    shapes: dict[str, Shape] = {
        POSITIONS: (row_count(weights, POSITIONS), dim),
        TYPES: (2, dim),
        f"{NORM}.weight": (dim,),
        f"{NORM}.bias": (dim,),
        WEIGHTS: (centres, dim),
        CENTRES: (centres, dim),
    }
    depths = {GLOBAL: layers, ALIGNED: 1, DIFFERENCES: 0 if MATRIX in weights else 1}
    if MATRIX in weights:
        shapes[MATRIX] = (dim, dim)
    for at, depth in depths.items():
        for layer in range(depth):
            shapes |= {f"{at}.{layer}.{name}": shape for name, shape in block_shapes(dim).items()}
    return shapes


def row_count(weights: Mapping[str, NDArray[Any]], name: str) -> int:
    """The rows of a table; 0 where there is none."""
    shape = weights[name].shape if name in weights else ()
    return shape[0] if shape else 0


def clip2video_vectors(blocks: Blocks, layers: int, share: float, frames: Float32, real: Bool) -> Float32:
    """Frame embeddings `[n, count, dim]`, of which `real [n, count]` exist, to unit vectors `[n, 2 dim]`."""
    whole = mean_of_units(_enhanced(blocks, GLOBAL, layers, frames, real), real)
    some, there = frames[:, ::2], real[:, ::2]
    tokens = np.concatenate((frames, _enhanced(blocks, ALIGNED, 1, some, there)), axis=1)
    aligned = align(tokens, np.concatenate((real, there), axis=1), blocks.weights)
    return join(whole, aligned, share)


def join(first: Float32, second: Float32, share: float) -> Float32:
    """Two unit vectors as one, whose inner products are the mixture of both."""
    parts = (np.float32(np.sqrt(share)) * first, np.float32(np.sqrt(1 - share)) * second)
    return np.concatenate(parts, axis=-1)


def align(tokens: Float32, real: Bool, weights: Weights) -> Float32:
    """Tokens `[n, count, dim]` gathered around the centres: unit vectors `[n, dim]`."""
    shares = softmax(tokens @ weights[WEIGHTS].T) * real[:, :, None]
    gathered = shares.swapaxes(1, 2) @ tokens - shares.sum(axis=1)[:, :, None] * weights[CENTRES]
    return unit(unit(gathered).mean(axis=1))


def _enhanced(blocks: Blocks, at: str, layers: int, frames: Float32, real: Bool) -> Float32:
    """Frames plus what blocks make of them among their differences."""
    weights, (n, count, dim) = blocks.weights, frames.shape
    places, types = weights[POSITIONS][:count], weights[TYPES]
    tokens = np.zeros((n, 2 * count - 1, dim), np.float32)
    seen = np.zeros(tokens.shape[:2], bool)
    tokens[:, ::2], seen[:, ::2] = frames + places + types[FRAME], real
    if count > 1:
        made = frames[:, 1:] - frames[:, :-1]
        if MATRIX in weights:
            made = made @ weights[MATRIX]
        else:
            made = blocks(DIFFERENCES, 1, made + places[1:], real[:, 1:])
        made = 2 * sigmoid(blocks.norm(NORM, np.asarray(made, np.float32), NORM_EPSILON)) - 1
        tokens[:, 1::2], seen[:, 1::2] = made + places[:-1] + types[DIFFERENCE], real[:, 1:] & real[:, :-1]
    return frames + blocks(at, layers, tokens, seen)[:, ::2]
