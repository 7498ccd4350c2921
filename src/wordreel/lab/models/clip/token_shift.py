"""TS2-Net's token shift (Liu et al., 2022, arXiv 2207.07852): patches of neighbouring frames meet.

With n tokens per frame (the class token is number 0) and a step of n // 7:

    tokens 1, 1 + step, 1 + 2 step, …  come from the previous frame,
    tokens 4, 4 + step, 4 + 2 step, …  come from the next frame,

with all their channels; the class token and the other patches stay. The first frame has no previous one and
the last no next one: they keep their own tokens. Where the two series meet, the next frame's token wins.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIVISIONS = 7
FROM_PREVIOUS, FROM_NEXT = 1, 4  # where the two series begin


def shift_tokens(tokens: Tensor, mask: Tensor | None = None) -> Tensor:
    """Shift `tokens [b, frames, n, width]` between the frames.

    Args:
        tokens: The input of an attention layer, after its layer norm.
        mask: Real frames `[b, frames]`; a frame then keeps its own token where the neighbour is padding.
            None: padding is a neighbour like any other, as in the released code.
    """
    count = tokens.shape[2]
    step = max(1, count // DIVISIONS)
    shifted = tokens.clone()
    for begin, here, there in (
        (FROM_PREVIOUS, slice(1, None), slice(None, -1)),
        (FROM_NEXT, slice(None, -1), slice(1, None)),
    ):
        chosen = torch.arange(begin, count, step, device=tokens.device)
        taken = tokens[:, there, chosen]
        if mask is not None:
            taken = torch.where(mask[:, there, None, None], taken, shifted[:, here, chosen])
        shifted[:, here, chosen] = taken
    return shifted
