"""The heads of CLIP4Clip (arXiv 2104.08860) over a clip's frame embeddings, in NumPy: search needs no torch.

With embeddings f of the clip's frames, at most `frames` of them and evenly spaced:

    mean         v = unit(mean unit(f))
    lstm         v = mean head of LSTM(f) + f
    transformer  v = mean head of blocks(f + positions) + f

Weights have the names of the published checkpoints. `models/clip/clip4clip.py` is what is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wordreel.nets.checkpoint import Shape, check
from wordreel.nets.clip.config import FrameHeadConfig
from wordreel.types import Bool, Float32

Weights = Mapping[str, Float32]
EPSILON = 1e-12  # of the norms
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


def block_shapes(dim: int) -> dict[str, Shape]:
    """The weights of a block."""
    linears = {"attn.out_proj": (dim, dim), "mlp.c_fc": (4 * dim, dim), "mlp.c_proj": (dim, 4 * dim)}
    shapes: dict[str, Shape] = {"attn.in_proj_weight": (3 * dim, dim), "attn.in_proj_bias": (3 * dim,)}
    for name, shape in linears.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for norm in ("ln_1", "ln_2"):
        shapes |= {f"{norm}.weight": (dim,), f"{norm}.bias": (dim,)}
    return shapes


class FrameHead:
    """A head with its weights, checked."""

    def __init__(self, config: FrameHeadConfig, dim: int, weights: Weights, given: str = "the head") -> None:
        positions = weights[POSITIONS].shape[0] if POSITIONS in weights else 0
        shapes = head_shapes(config, dim, positions)
        check(weights, shapes, {}, given=given, expected=f"a CLIP4Clip with its {config.kind} head")
        self.config = config
        self._weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}

    def __call__(self, clips: Sequence[Float32]) -> Float32:
        """Frame embeddings `[n, dim]` of each clip, in order of time, to unit vectors `[clips, dim]`."""
        parts = [self._batch(clips[start : start + BATCH]) for start in range(0, len(clips), BATCH)]
        return np.concatenate(parts)

    def _batch(self, clips: Sequence[Float32]) -> Float32:
        chosen = [clip[uniform_rows(len(clip), self.config.frames)] for clip in clips]
        most = max(map(len, chosen))
        frames = np.zeros((len(chosen), most, chosen[0].shape[1]), np.float32)
        real = np.zeros(frames.shape[:2], bool)
        for number, rows in enumerate(chosen):
            frames[number, : len(rows)], real[number, : len(rows)] = rows, True
        if self.config.kind == "lstm":
            frames = frames + self._lstm(frames)
        elif self.config.kind == "transformer":
            frames = frames + self._transformer(frames, real)
        units = np.where(real[:, :, None], unit(frames), np.float32(0))
        return unit(units.sum(axis=1) / real.sum(axis=1)[:, None])

    def _lstm(self, frames: Float32) -> Float32:
        """The hidden state after each frame; padding comes last and changes none before it."""
        weights, out = self._weights, np.zeros_like(frames)
        hidden = cell = np.zeros_like(frames[:, 0])
        inputs = frames @ weights[f"{LSTM}.weight_ih_l0"].T + weights[f"{LSTM}.bias_ih_l0"]
        for step in range(frames.shape[1]):
            gates = inputs[:, step] + hidden @ weights[f"{LSTM}.weight_hh_l0"].T
            into, forget, new, show = np.split(gates + weights[f"{LSTM}.bias_hh_l0"], 4, axis=-1)
            cell = sigmoid(forget) * cell + sigmoid(into) * np.tanh(new)
            hidden = out[:, step] = sigmoid(show) * np.tanh(cell)
        return out

    def _transformer(self, frames: Float32, real: Bool) -> Float32:
        x = frames + self._weights[POSITIONS][: frames.shape[1]]
        for layer in range(self.config.layers):
            at = f"{BLOCKS}.{layer}"
            x = x + self._attention(f"{at}.attn", self._norm(f"{at}.ln_1", x), real)
            wide = self._linear(f"{at}.mlp.c_fc", self._norm(f"{at}.ln_2", x))
            x = x + self._linear(f"{at}.mlp.c_proj", wide * sigmoid(np.float32(1.702) * wide))
        return x

    def _attention(self, at: str, x: Float32, real: Bool) -> Float32:
        clips, count, dim = x.shape
        both = x @ self._weights[f"{at}.in_proj_weight"].T + self._weights[f"{at}.in_proj_bias"]
        three = both.reshape(clips, count, 3, self.config.heads, -1).transpose(2, 0, 3, 1, 4)
        scores = three[0] @ three[1].swapaxes(-1, -2) / np.float32(np.sqrt(dim // self.config.heads))
        scores = np.where(real[:, None, None], scores, np.float32(-1e6))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ three[2]
        return self._linear(f"{at}.out_proj", mixed.swapaxes(1, 2).reshape(clips, count, dim))

    def _norm(self, at: str, x: Float32) -> Float32:
        apart = x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt((apart**2).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        scaled = apart / scale * self._weights[f"{at}.weight"] + self._weights[f"{at}.bias"]
        return np.asarray(scaled, np.float32)

    def _linear(self, at: str, x: Float32) -> Float32:
        return np.asarray(x @ self._weights[f"{at}.weight"].T + self._weights[f"{at}.bias"], np.float32)


def sigmoid(x: Float32) -> Float32:
    return np.asarray(1 / (1 + np.exp(-x)), np.float32)


def unit(x: Float32) -> Float32:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12), np.float32)
