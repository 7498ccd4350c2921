"""TS2-Net's similarity: a video's frames count by how well they fit the text (arXiv 2207.07852).

    s_f = cos(text, frame_f),   w = softmax_f(4 s_f / ‖s‖₂),   S = Σ_f w_f s_f

over real frames only. The weights depend on both sides, so there is no single vector per video.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

SHARPNESS = 4.0
BLOCK = 1 << 26  # numbers in memory at once: captions × videos × frames


def frame_weighted_cosines(texts: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
    """`texts [q, dim]` and `frames [b, f, dim]` of unit length, `mask [b, f]`, to `[q, b]`."""
    rows = max(1, BLOCK // max(1, mask.numel()))
    starts = range(0, len(texts), rows)
    with torch.autocast(texts.device.type, enabled=False):  # as in `frame_pooling.cosines`
        texts, frames = texts.float(), frames.float()
        return torch.cat([_block(texts[start : start + rows], frames, mask) for start in starts])


def _block(texts: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
    cosines: Tensor = torch.einsum("qd,bfd->qbf", texts, frames)
    scaled = SHARPNESS * normalize(cosines * mask, dim=-1)
    weights = scaled.masked_fill(~mask, torch.finfo(scaled.dtype).min).softmax(dim=-1)
    return (weights * cosines).sum(dim=-1)
