"""CLIP2Video's temporal difference block (Fang et al., 2021, arXiv 2106.11097).

Between the tokens of neighbouring frames f_t and f_{t+1} stands a token of their difference:

    d_t = 2 σ(LN(g(f_{t+1} − f_t))) − 1

g is one attention layer over the differences with positions added ("attention"), or a matrix ("mlp"). The
2T − 1 tokens then get a position, which the difference t shares with frame t, and a type.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

FRAME, DIFFERENCE = 1, 0  # rows of the table of types

Transform = Callable[[Tensor, Tensor], Tensor]
"""What stands between f_{t+1} − f_t and the layer norm: differences `[b, T − 1, dim]` and which of them are
between real frames `[b, T − 1]`, to `[b, T − 1, dim]`."""


def difference_tokens(
    frames: Tensor,
    mask: Tensor,
    positions: Tensor,
    types: Tensor,
    transform: Transform,
    norm: Callable[[Tensor], Tensor],
    *,
    released: bool = False,
) -> tuple[Tensor, Tensor]:
    """Frames and their differences in turn, with positions and types: `[b, 2T − 1, dim]`, and their mask.

    Args:
        frames: `[b, T, dim]`.
        mask: Real frames `[b, T]`.
        positions: One row per frame, `[≥ T, dim]`.
        types: Two rows: difference, frame.
        transform: See `Transform`.
        norm: The layer norm over a difference.
        released: Count the difference between the last real frame and the padding after it as real, as the
            released code does.
    """
    b, count, dim = frames.shape
    places = positions[:count]
    own = frames + (places + types[FRAME])
    between = mask[:, 1:] & mask[:, :-1]
    made = transform(frames[:, 1:] - frames[:, :-1], mask[:, 1:]) if count > 1 else frames[:, :0]
    differences = 2 * torch.sigmoid(norm(made)) - 1 + (places[:-1] + types[DIFFERENCE])
    tokens = torch.stack((own[:, :-1], differences), dim=2).reshape(b, 2 * count - 2, dim)
    real = torch.stack((mask[:, :-1], mask[:, :-1] if released else between), dim=2).flatten(1)
    return torch.cat((tokens, own[:, -1:]), dim=1), torch.cat((real, mask[:, -1:]), dim=1)
