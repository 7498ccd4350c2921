"""The heads of CLIP4Clip (arXiv 2104.08860) over a clip's frame embeddings, in NumPy: search needs no torch.

With embeddings f of the clip's frames, at most `frames` of them and evenly spaced:

    mean         v = unit(mean unit(f))
    lstm         v = mean head of LSTM(f) + f
    transformer  v = mean head of blocks(f + positions) + f

and CLIP2Video's (`clip2video_head`), whose vectors are twice as long. Weights have the names of the published
checkpoints. `lab/models/clip/clip4clip.py` is what is trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordreel.backbones.clip2video_head import clip2video_shapes, clip2video_vectors
from wordreel.backbones.config import FrameHeadConfig
from wordreel.backbones.numpy_blocks import Blocks, Weights, block_shapes, mean_of_units, product, sigmoid
from wordreel.errors import WeightsError
from wordreel.runtime.nets.checkpoint import Shape, check
from wordreel.types import Float32

HEAD = "head."  # before the names of a head's weights in the state of a backbone
BATCH = 64  # clips
BLOCKS, LSTM, POSITIONS = "transformerClip.resblocks", "lstm_visual", "frame_position_embeddings.weight"


def uniform_rows(count: int, most: int) -> list[int]:
    """Evenly spaced rows of `count`, the first and the last among them: all where they are few.

    >>> uniform_rows(100, 4)
    [0, 33, 66, 99]
    """
    return [int(row) for row in np.linspace(0, count - 1, min(count, most))]


def head_shapes(config: FrameHeadConfig, dim: int, positions: int) -> dict[str, Shape]:
    """The key and shape of every weight of a head; `positions` is the length of its table."""
    if config.kind == "mean":
        return {}
    shapes: dict[str, Shape] = {POSITIONS: (positions, dim)}
    if config.kind == "lstm":  # which has the table and does not use it
        sides = {"ih": dim, "hh": dim}
        shapes |= {f"{LSTM}.weight_{side}_l0": (4 * dim, size) for side, size in sides.items()}
        return shapes | {f"{LSTM}.bias_{side}_l0": (4 * dim,) for side in sides}
    for layer in range(config.layers):
        for name, shape in block_shapes(dim).items():
            shapes[f"{BLOCKS}.{layer}.{name}"] = shape
    return shapes


class FrameHead:
    """A head with its weights, checked."""

    def __init__(self, config: FrameHeadConfig, dim: int, weights: Weights, given: str = "the head") -> None:
        positions = weights[POSITIONS].shape[0] if POSITIONS in weights else 0
        if config.kind == "clip2video":
            shapes = clip2video_shapes(weights, dim, config.layers)
            check(weights, shapes, {}, given=given, expected="a CLIP2Video")
        else:
            shapes = head_shapes(config, dim, positions)
            check(weights, shapes, {}, given=given, expected=f"a CLIP4Clip with its {config.kind} head")
        if config.frames < 1 or dim % config.heads or (0 < positions < config.frames):
            raise WeightsError(
                f"{given} describes a head of {config.heads} heads over {config.frames} frames"
            )
        self.config = config
        self._weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}
        self._blocks = Blocks(self._weights, config.heads)

    def __call__(self, clips: Sequence[Float32]) -> Float32:
        """Frame embeddings `[n, dim]` of each clip, in order of time, to one unit vector of each."""
        parts = [self._batch(clips[start : start + BATCH]) for start in range(0, len(clips), BATCH)]
        return np.concatenate(parts)

    def _batch(self, clips: Sequence[Float32]) -> Float32:
        chosen = [clip[uniform_rows(len(clip), self.config.frames)] for clip in clips]
        most = max(map(len, chosen))
        frames = np.zeros((len(chosen), most, chosen[0].shape[1]), np.float32)
        real = np.zeros(frames.shape[:2], bool)
        for number, rows in enumerate(chosen):
            frames[number, : len(rows)], real[number, : len(rows)] = rows, True
        config = self.config
        if config.kind == "clip2video":
            return clip2video_vectors(self._blocks, config.layers, config.global_weight, frames, real)
        if config.kind == "lstm":
            frames = frames + self._lstm(frames)
        elif config.kind == "transformer":
            placed = frames + self._weights[POSITIONS][: frames.shape[1]]
            frames = frames + self._blocks(BLOCKS, config.layers, placed, real)
        return mean_of_units(frames, real)

    def _lstm(self, frames: Float32) -> Float32:
        """The hidden state after each frame; padding comes last and changes none before it."""
        weights, out = self._weights, np.zeros_like(frames)
        hidden = cell = np.zeros_like(frames[:, 0])
        inputs = product(frames, weights[f"{LSTM}.weight_ih_l0"]) + weights[f"{LSTM}.bias_ih_l0"]
        for step in range(frames.shape[1]):
            gates = inputs[:, step] + hidden @ weights[f"{LSTM}.weight_hh_l0"].T
            into, forget, new, show = np.split(gates + weights[f"{LSTM}.bias_hh_l0"], 4, axis=-1)
            cell = sigmoid(forget) * cell + sigmoid(into) * np.tanh(new)
            hidden = out[:, step] = sigmoid(show) * np.tanh(cell)
        return out
