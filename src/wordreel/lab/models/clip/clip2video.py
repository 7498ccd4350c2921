"""CLIP2Video (Fang et al., 2021, arXiv 2106.11097). Parameters have the names of the published checkpoints.

With frame embeddings f and the temporal difference block D (`difference_tokens`):

    global     h = blocks(D(f)) at the frames' tokens,  g = unit(mean_t unit(h_t + f_t))
    alignment  every second frame e: h = block(D(e)) at the frames' tokens, A over the tokens f and h + e
    logits     exp(logit scale) · (w · cos(caption, g) + (1 − w) · cos(A of the caption, A of the video))

A (`align_tokens`) reads all of a caption's tokens but the first. D is the same for both branches. In
training each branch has its own loss, with the same weights w and 1 − w.

**Temporal difference.** Between the tokens of frames f_t and f_{t+1} stands one of their difference:

    d_t = 2 σ(LN(g(f_{t+1} − f_t))) − 1

g is one attention layer over the differences with positions added ("attention"), or a matrix ("mlp"). The
2T − 1 tokens then get a position, which the difference t shares with frame t, and a type.

**Temporal alignment.** Video and text tokens x_t meet in K centres E_k with assignment weights W, in the
manner of NetVLAD:

    a_tk = softmax_k(x_t · W_k),   v_k = Σ_t a_tk (x_t − E_k),   v = unit(mean_k unit(v_k))

over real tokens. The same centres serve both sides, so that a centre comes to stand for one kind of content.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from wordreel.lab.models.clip.clip4clip import EPSILON, additive_mask, copy_blocks
from wordreel.lab.models.clip.config import Clip2VideoConfig
from wordreel.lab.models.clip.towers import ClipTowers, Transformer, end_states
from wordreel.lab.models.clip.video_text import (
    CaptionBatch,
    Encoded,
    FrameBatch,
    VideoTextModel,
    cosines,
    mean_pool,
)

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
    """Interleave frames and their differences, with positions and types.

    Return `[b, 2T − 1, dim]`, and their mask.

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


def align_tokens(tokens: Tensor, mask: Tensor, weights: Tensor, centres: Tensor) -> Tensor:
    """Align tokens with centres and return unit vectors `[n, dim]`.

    The arguments are `tokens [n, t, dim]`, `mask [n, t]`, and `weights` and `centres` `[k, dim]`.

    One product instead of n × t × k × dim differences: Σ_t a_tk (x_t − E_k) = Σ_t a_tk x_t − (Σ_t a_tk) E_k.
    """
    shares = (tokens @ weights.T).softmax(dim=-1) * mask[:, :, None]
    gathered = shares.transpose(1, 2) @ tokens - shares.sum(dim=1)[:, :, None] * centres
    return normalize(normalize(gathered, dim=-1).mean(dim=1), dim=-1)


CENTRE_SPREAD = 1 / 8  # standard deviation of the first centres
STRIDE = 2  # the alignment block's second stream takes every second frame


class Clip2Video(VideoTextModel):
    """CLIP2Video: frames and their differences, and centres that captions and videos share."""

    def __init__(self, config: Clip2VideoConfig) -> None:
        super().__init__()
        self.config: Clip2VideoConfig = config
        dim, text = config.backbone.dim, config.backbone.text
        self.clip = ClipTowers(config.backbone)
        self.frame_position_embeddings = nn.Embedding(text.length, dim)
        self.transformerClip = Transformer(dim, config.layers, text.heads, epsilon=EPSILON)
        if config.difference == "mlp":
            self.frame2t_projection = nn.Parameter(torch.empty(dim, dim))
            nn.init.normal_(self.frame2t_projection, std=CENTRE_SPREAD)
        else:
            self.frame2t_attention = Transformer(dim, 1, text.heads, epsilon=EPSILON)
        self.type_position_embeddings = nn.Embedding(2, dim)
        self.trans_layernorm = nn.LayerNorm(dim)
        self.weight_center = nn.Parameter(CENTRE_SPREAD * torch.randn(config.centres, dim))
        self.emb_center = nn.Parameter(CENTRE_SPREAD * torch.randn(config.centres, dim))
        self.actionClip = Transformer(dim, 1, text.heads, epsilon=EPSILON)
        self.init_new_layers()
        self.init_head()

    def init_head(self) -> None:
        """Take positions, types, blocks and the matrix from CLIP, where its sizes allow it."""
        if self.config.backbone.text.width != self.config.backbone.dim:
            return
        with torch.no_grad():
            self.frame_position_embeddings.weight.copy_(self.clip.positional_embedding)
            self.type_position_embeddings.weight.copy_(self.clip.positional_embedding[:2])
            copy_blocks(self.clip.transformer, self.transformerClip)
            copy_blocks(self.clip.transformer, self.actionClip)
            if self.config.difference == "attention":
                copy_blocks(self.clip.transformer, self.frame2t_attention)
            elif len(self.clip.visual.proj) >= len(self.frame2t_projection):
                self.frame2t_projection.copy_(self.clip.visual.proj[: len(self.frame2t_projection)])

    def encode_videos(self, frames: FrameBatch) -> Encoded:
        """Return two unit vectors `[b, dim]`: global, and aligned."""
        return self.encode_frames(self.clip.frames(frames.pixels).float(), frames.mask)

    def encode_frames(self, frames: Tensor, mask: Tensor) -> Encoded:
        """Encode videos from frame embeddings `[b, frames, dim]`, as `encode_videos` does."""
        enhanced = self._enhanced(frames, mask, self.transformerClip)
        some, real = frames[:, ::STRIDE], mask[:, ::STRIDE]
        tokens = torch.cat((frames, self._enhanced(some, real, self.actionClip)), dim=1)
        aligned = align_tokens(tokens, torch.cat((mask, real), dim=1), self.weight_center, self.emb_center)
        return mean_pool(enhanced, mask), aligned

    def encode_captions(self, captions: CaptionBatch) -> Encoded:
        """Return two unit vectors `[q, dim]`: of the end-of-text token, and aligned."""
        tokens = self.clip.text_tokens(captions.ids).float()
        real = captions.mask.clone()
        real[:, 0] = False
        aligned = align_tokens(tokens, real, self.weight_center, self.emb_center)
        return normalize(end_states(tokens, captions.ids), dim=-1), aligned

    def logits(self, captions: Encoded, videos: Encoded) -> Tensor:
        (first, one), (second, other) = self.training_logits(captions, videos)
        return first * one + second * other

    def training_logits(self, captions: Encoded, videos: Encoded) -> tuple[tuple[float, Tensor], ...]:
        weight, scale = self.config.global_weight, self.clip.scale()
        both = (scale * cosines(text, video) for text, video in zip(captions, videos, strict=True))
        return tuple(zip((weight, 1 - weight), both, strict=True))

    def _enhanced(self, frames: Tensor, mask: Tensor, blocks: Transformer) -> Tensor:
        """Frames plus what blocks make of them among their differences."""
        tokens, real = difference_tokens(
            frames,
            mask,
            self.frame_position_embeddings.weight,
            self.type_position_embeddings.weight,
            self._transform,
            self.trans_layernorm,
            released=self.config.mode == "released",
        )
        states: Tensor = blocks(tokens, self._mask(real))
        return frames + states[:, ::2].float()

    def _transform(self, differences: Tensor, real: Tensor) -> Tensor:
        if self.config.difference == "mlp":
            return differences @ self.frame2t_projection
        # A difference has the position of the later frame here, and that of the earlier one among the frames.
        places = self.frame_position_embeddings.weight[1 : 1 + differences.shape[1]]
        made: Tensor = self.frame2t_attention(differences + places, self._mask(real))
        return made

    def _mask(self, real: Tensor) -> Tensor:
        return additive_mask(real, self.config.backbone.text.heads if self.config.mode == "released" else 0)
