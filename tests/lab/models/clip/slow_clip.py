"""CLIP and the heads of CLIP4Clip in NumPy, one picture, caption, frame and attention head at a time.

Every function takes a state by the published names as float64 arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
State = Mapping[str, Array]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def quick_gelu(x: Array) -> Array:
    return x * sigmoid(1.702 * x)


def unit(x: Array) -> Array:
    return x / np.linalg.norm(x)


def norm(x: Array, state: State, at: str, epsilon: float) -> Array:
    rows = [(row - row.mean()) / np.sqrt(row.var() + epsilon) for row in x]
    return np.stack(rows) * state[f"{at}.weight"] + state[f"{at}.bias"]


def attention(x: Array, state: State, at: str, heads: int, added: Callable[[int, int, int], float]) -> Array:
    """`added(head, query, key)` is what a mask adds to a score."""
    n, width = x.shape
    qkv = x @ state[f"{at}.in_proj_weight"].T + state[f"{at}.in_proj_bias"]
    out, size = np.zeros((n, width)), width // heads
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        q, k, v = qkv[:, :width][:, part], qkv[:, width : 2 * width][:, part], qkv[:, 2 * width :][:, part]
        for i in range(n):
            scores = np.array([q[i] @ k[j] / np.sqrt(size) + added(head, i, j) for j in range(n)])
            weights = np.exp(scores - scores.max())
            out[i, part] = (weights / weights.sum()) @ v
    return out @ state[f"{at}.out_proj.weight"].T + state[f"{at}.out_proj.bias"]


def blocks(
    x: Array,
    state: State,
    at: str,
    depth: int,
    heads: int,
    epsilon: float,
    added: Callable[[int, int, int], float] = lambda head, i, j: 0.0,
) -> Array:
    for number in range(depth):
        one = f"{at}.resblocks.{number}"
        x = x + attention(norm(x, state, f"{one}.ln_1", epsilon), state, f"{one}.attn", heads, added)
        inner = norm(x, state, f"{one}.ln_2", epsilon) @ state[f"{one}.mlp.c_fc.weight"].T
        inner = quick_gelu(inner + state[f"{one}.mlp.c_fc.bias"])
        x = x + inner @ state[f"{one}.mlp.c_proj.weight"].T + state[f"{one}.mlp.c_proj.bias"]
    return x


def patches_2d(picture: Array, weight: Array) -> Array:
    """`[patches, width]`, row by row."""
    size = weight.shape[-1]
    corners = [(y, x) for y in range(0, picture.shape[1], size) for x in range(0, picture.shape[2], size)]
    cut = [picture[:, y : y + size, x : x + size] for y, x in corners]
    return np.stack([(patch * weight).sum(axis=(1, 2, 3)) for patch in cut])


def patches_3d(video: Array, frame: int, weight: Array) -> Array:
    """`[patches, width]` of one frame: its own patch and its neighbours', where there are any."""
    total: Array = np.zeros(())
    for step in (-1, 0, 1):
        if 0 <= frame + step < len(video):
            total = total + patches_2d(video[frame + step], weight[:, :, step + 1])
    return np.asarray(total)


def frame_tokens(patches: Array, state: State, depth: int, heads: int, epsilon: float = 1e-5) -> Array:
    """All projected tokens of one picture, `[tokens, dim]`."""
    x = np.concatenate([state["visual.class_embedding"][None], patches])
    x = norm(x + state["visual.positional_embedding"], state, "visual.ln_pre", epsilon)
    x = blocks(x, state, "visual.transformer", depth, heads, epsilon)
    return norm(x, state, "visual.ln_post", epsilon) @ state["visual.proj"]


def text_tokens(ids: Sequence[int], state: State, depth: int, heads: int, epsilon: float = 1e-5) -> Array:
    """All projected states of one caption, `[tokens, dim]`."""
    x = np.stack([state["token_embedding.weight"][number] for number in ids])
    x = x + state["positional_embedding"][: len(ids)]
    x = blocks(x, state, "transformer", depth, heads, epsilon, lambda head, i, j: 0.0 if j <= i else -np.inf)
    return norm(x, state, "ln_final", epsilon) @ state["text_projection"]


def mean_head(frames: Sequence[Array]) -> Array:
    """Of the real frames alone."""
    total = np.zeros_like(frames[0])
    for frame in frames:
        total += unit(frame)
    return unit(total / len(frames))


def lstm_head(frames: Sequence[Array], state: State) -> Array:
    h = c = np.zeros_like(frames[0])
    out = []
    for frame in frames:
        gates = state["lstm_visual.weight_ih_l0"] @ frame + state["lstm_visual.bias_ih_l0"]
        gates = gates + state["lstm_visual.weight_hh_l0"] @ h + state["lstm_visual.bias_hh_l0"]
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h + frame)
    return mean_head(out)


def transformer_head(frames: Sequence[Array], state: State, depth: int, heads: int) -> Array:
    x = np.stack(frames) + state["frame_position_embeddings.weight"][: len(frames)]
    x = blocks(x, state, "transformerClip", depth, heads, 1e-12)
    return mean_head([row + frame for row, frame in zip(x, frames, strict=True)])


def tight_head(text: Array, frames: Sequence[Array], state: State, depth: int, heads: int) -> float:
    """The logit of one caption with one video."""
    x = np.stack([text, *frames])
    x = x + state["cross.embeddings.position_embeddings.weight"][: len(x)]
    x = blocks(x, state, "cross.transformer", depth, heads, 1e-12)
    first = norm(x, state, "cross.pooler.ln_pool", 1e-12)[0]
    pooled = quick_gelu(state["cross.pooler.dense.weight"] @ first + state["cross.pooler.dense.bias"])
    return float(state["similarity_dense.weight"][0] @ pooled + state["similarity_dense.bias"][0])
