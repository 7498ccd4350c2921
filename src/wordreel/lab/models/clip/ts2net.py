"""TS2-Net (Liu et al., 2022, arXiv 2207.07852). Parameters have the names of the published checkpoints.

    tokens   of each frame from the image tower, whose last blocks shift them between frames (`shift_tokens`)
    chosen   of each frame the class token and the k most telling patches (`token_selection`)
    h        blocks(chosen + positions) + chosen, at the class tokens
    logits   exp(logit scale) · Σ_f w_f cos(caption, h_f), w depending on the caption

A video therefore has one vector per frame, and no single vector that a search could compare.

**Token shift.** With n tokens per frame (the class token is number 0) and a step of n // 7:

    tokens 1, 1 + step, 1 + 2 step, …  come from the previous frame,
    tokens 4, 4 + step, 4 + 2 step, …  come from the next frame,

with all their channels; the class token and the other patches stay. The first frame has no previous one and
the last no next one: they keep their own tokens. Where the two series meet, the next frame's token wins.

**Frame weighting.** A video's frames count by how well they fit the text:

    s_f = cos(text, frame_f),   w = softmax_f(4 s_f / ‖s‖₂),   S = Σ_f w_f s_f

over real frames only. The weights depend on both sides, so there is no single vector per video.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from wordreel.errors import NextStep, WordreelError
from wordreel.lab.models.clip.clip4clip import EPSILON, additive_mask, copy_blocks
from wordreel.lab.models.clip.config import TS2NetConfig
from wordreel.lab.models.clip.token_selection import TokenSelection
from wordreel.lab.models.clip.towers import ClipTowers, Transformer
from wordreel.lab.models.clip.video_text import CaptionBatch, Encoded, FrameBatch, VideoTextModel

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


SHARPNESS = 4.0
BLOCK = 1 << 26  # numbers in memory at once: captions × videos × frames


def frame_weighted_cosines(texts: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
    """Compute similarities `[q, b]` from unit vectors.

    The arguments are `texts [q, dim]`, `frames [b, f, dim]` and `mask [b, f]`.
    """
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


class TS2Net(VideoTextModel):
    """TS2-Net: tokens shifted between frames, and the most telling patches of each."""

    def __init__(self, config: TS2NetConfig) -> None:
        super().__init__()
        self.config: TS2NetConfig = config
        dim, text = config.backbone.dim, config.backbone.text
        shift = shift_anywhere if config.mode == "released" else shift_tokens
        self.clip = ClipTowers(config.backbone, shifts=dict.fromkeys(config.shifted_blocks, shift))
        self.frame_position_embeddings = nn.Embedding(config.positions, dim)
        self.transformerClip = Transformer(dim, config.layers, text.heads, epsilon=EPSILON)
        self.visual_token_selector = TokenSelection(
            dim,
            config.patches,
            samples=config.samples,
            sigma=config.sigma,
            gradient=config.topk_gradient,
            noisy=config.noisy_inference,
        )
        self.init_new_layers()
        self.init_head()

    def init_head(self) -> None:
        """Take positions and blocks from the text tower, where it has the size of the joint space."""
        if self.config.backbone.text.width != self.config.backbone.dim:
            return
        with torch.no_grad():
            table = stretched(self.clip.positional_embedding, self.config.positions)
            self.frame_position_embeddings.weight.copy_(table)
        copy_blocks(self.clip.transformer, self.transformerClip)

    def encode_videos(self, frames: FrameBatch) -> Encoded:
        """Return unit vectors of the frames `[b, frames, dim]`, and which of them are real."""
        count = frames.mask.shape[1] * (1 + self.config.patches)
        if count > self.config.positions:
            raise WordreelError(
                f"{frames.mask.shape[1]} frames of {1 + self.config.patches} tokens need {count} positions; "
                f"this model has {self.config.positions}",
                NextStep("take fewer frames, or give the model more positions"),
            )
        tokens = self.clip.frame_tokens(frames.pixels, frames.mask).float()
        chosen = self.visual_token_selector(tokens.flatten(0, 1)).view(len(tokens), count, -1)
        placed = chosen + self.frame_position_embeddings.weight[:count]
        mask = self._token_mask(frames.mask)
        states = chosen + self.transformerClip(placed, additive_mask(mask)).float()
        first = slice(None, None, 1 + self.config.patches)
        return normalize(states[:, first], dim=-1), mask[:, first]

    def encode_captions(self, captions: CaptionBatch) -> Encoded:
        """Return unit vectors `[q, dim]`."""
        return (normalize(self.clip.texts(captions.ids).float(), dim=-1),)

    def logits(self, captions: Encoded, videos: Encoded) -> Tensor:
        return self.clip.scale() * frame_weighted_cosines(captions[0], *videos)

    def _token_mask(self, mask: Tensor) -> Tensor:
        """`[b, frames]` to `[b, frames · (1 + k)]`: each frame's bit for each of its tokens."""
        each = 1 + self.config.patches
        return mask.repeat(1, each) if self.config.tiled_mask else mask.repeat_interleave(each, dim=1)


def shift_anywhere(tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Shift as the released code does: padding is a neighbour like any other frame."""
    return shift_tokens(tokens)


def stretched(table: Tensor, rows: int) -> Tensor:
    """Return the first rows of a table of positions.

    More rows than it has are interpolated over all of it.
    """
    if rows <= len(table):
        return table[:rows]
    return interpolate(table.T[None], size=rows, mode="linear", align_corners=True)[0].T
