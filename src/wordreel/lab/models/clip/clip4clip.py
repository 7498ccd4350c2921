"""CLIP4Clip (arXiv 2104.08860). Parameters have the names of the published checkpoints.

With frame embeddings f_1 … f_n (n ≤ max_frames) of the real frames and a caption embedding c:

    mean         v = unit(mean_i unit(f_i))
    lstm         h = LSTM(f),               v = mean head of h + f
    transformer  h = blocks(f + positions), v = mean head of h + f
    logits       exp(logit scale) · cos(c, v)

    tight        h = blocks([c; f] + positions), logit = w · QuickGELU(W norm(h_0) + b) + bias, no logit scale

The LSTM head carries a table of frame positions that it does not use, as published.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from wordreel.lab.models.clip.config import Clip4ClipConfig
from wordreel.lab.models.clip.towers import ClipTowers, QuickGELU, Transformer
from wordreel.lab.models.clip.video_text import (
    CaptionBatch,
    Encoded,
    FrameBatch,
    VideoTextModel,
    cosines,
    mean_pool,
)

MASKED = -1e6  # added to the attention scores of frames that are not there
EPSILON = 1e-12  # of the heads' norms, published; CLIP's own have 1e-5
PAIRS = 1024  # caption-video pairs that the tight head scores at a time


class Clip4Clip(VideoTextModel):
    """CLIP4Clip with one of four heads over the embeddings of frames."""

    def __init__(self, config: Clip4ClipConfig) -> None:
        super().__init__()
        self.config: Clip4ClipConfig = config
        dim, text, head = config.backbone.dim, config.backbone.text, config.head
        self.clip = ClipTowers(config.backbone, patch_3d=config.patch == "3d")
        if head in ("lstm", "transformer"):
            self.frame_position_embeddings = nn.Embedding(text.length, dim)
        if head == "lstm":
            self.lstm_visual = nn.LSTM(dim, dim, batch_first=True)
        elif head == "transformer":
            self.transformerClip = Transformer(dim, config.layers, text.heads, epsilon=EPSILON)
        elif head == "tight":
            self.cross = CrossEncoder(dim, text.length, config.layers, text.heads, config.dropout)
            self.similarity_dense = nn.Linear(dim, 1)
        self.init_new_layers()
        self.init_head()

    def init_head(self) -> None:
        """Take positions and first blocks from the text tower, if it has the size of the joint space."""
        dim, text, head = self.config.backbone.dim, self.config.backbone.text, self.config.head
        if text.width != dim:
            return
        with torch.no_grad():
            if head in ("lstm", "transformer"):
                self.frame_position_embeddings.weight.copy_(self.clip.positional_embedding)
            if head == "transformer":
                copy_blocks(self.clip.transformer, self.transformerClip)
            elif head == "tight":
                self.cross.embeddings.position_embeddings.weight.copy_(self.clip.positional_embedding)
                copy_blocks(self.clip.transformer, self.cross.transformer)

    def encode_videos(self, frames: FrameBatch) -> Encoded:
        """Return a unit vector `[b, dim]`.

        Of the tight head frame embeddings `[b, frames, dim]` and their mask.
        """
        return self.encode_frames(self.clip.frames(frames.pixels).float(), frames.mask)

    def encode_frames(self, frames: Tensor, mask: Tensor) -> Encoded:
        """Encode videos from frame embeddings `[b, frames, dim]`, as `encode_videos` does."""
        if self.config.head == "tight":
            return frames, mask
        if self.config.head == "lstm":
            states, _ = self.lstm_visual(frames)  # padding comes last and is left out of the mean
            frames = frames + states.float()
        elif self.config.head == "transformer":
            placed = frames + self.frame_position_embeddings.weight[: frames.shape[1]]
            frames = frames + self.transformerClip(placed, self._mask(mask)).float()
        return (mean_pool(frames, mask),)

    def encode_captions(self, captions: CaptionBatch) -> Encoded:
        """Encode captions as `[q, dim]`, at unit length except for the tight head."""
        features = self.clip.texts(captions.ids).float()
        return (features if self.config.head == "tight" else normalize(features, dim=-1),)

    def logits(self, captions: Encoded, videos: Encoded) -> Tensor:
        if self.config.head != "tight":
            return self.clip.scale() * cosines(captions[0], videos[0])
        (texts,), (frames, mask) = captions, videos
        rows = max(1, PAIRS // max(1, len(frames)))
        return torch.cat([self._pairs(some, frames, mask) for some in torch.split(texts, rows)])

    def _pairs(self, texts: Tensor, frames: Tensor, mask: Tensor) -> Tensor:
        """Return the tight head's logits `[q, b]` of every caption with every video."""
        q, b, n = len(texts), len(frames), frames.shape[1]
        first = texts[:, None, None].expand(q, b, 1, -1)
        tokens = torch.cat([first, frames.expand(q, -1, -1, -1)], dim=2).flatten(0, 1)
        real = torch.cat([mask.new_ones(q, b, 1), mask.expand(q, b, n)], dim=2).flatten(0, 1)
        pooled = self.cross(tokens, self._mask(real))
        scores: Tensor = self.similarity_dense(pooled).float()
        return scores.view(q, b)

    def _mask(self, mask: Tensor) -> Tensor:
        tiled = self.config.mode == "released-2021"
        return additive_mask(mask, self.config.backbone.text.heads if tiled else 0)


class CrossEncoder(nn.Module):
    """The tight head's blocks over a caption's embedding and the frames; the first token is read out."""

    def __init__(self, dim: int, positions: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.embeddings = CrossEmbeddings(dim, positions, dropout)
        self.transformer = Transformer(dim, layers, heads, epsilon=EPSILON)
        self.pooler = CrossPooler(dim)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Reduce `tokens [pairs, n, dim]` with an additive mask to `[pairs, dim]`."""
        y: Tensor = self.pooler(self.transformer(self.embeddings(tokens), mask))
        return y


class CrossEmbeddings(nn.Module):
    """Add positions to the tokens of the tight head, with dropout."""

    def __init__(self, dim: int, positions: int, dropout: float) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(positions, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        y: Tensor = self.dropout(tokens + self.position_embeddings.weight[: tokens.shape[1]])
        return y


class CrossPooler(nn.Module):
    """Read the first token out: LN, Linear and QuickGELU."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.ln_pool = nn.LayerNorm(dim, EPSILON)
        self.dense = nn.Linear(dim, dim)
        self.activation = QuickGELU()

    def forward(self, tokens: Tensor) -> Tensor:
        y: Tensor = self.activation(self.dense(self.ln_pool(tokens[:, 0])))
        return y


def additive_mask(real: Tensor, tiles: int = 0) -> Tensor:
    """Turn `real [b, n]` into what is added to attention scores: `[b, 1, 1, n]`, 0 or −1e6.

    With `tiles` heads, `[b, heads, 1, n]` in the order of CLIP2Video's released code and of CLIP4Clip's
    before 26 July 2021: head h of video i gets the mask of video (i · heads + h) mod b.
    """
    added = torch.zeros_like(real, dtype=torch.float32).masked_fill(~real, MASKED)
    if not tiles:
        return added[:, None, None]
    return added.repeat(tiles, 1).view(len(real), tiles, 1, real.shape[1])


def copy_blocks(source: Transformer, target: Transformer) -> None:
    """Copy the first blocks of `source` into all of `target`'s; further blocks stay as they were."""
    for block, copy in zip(source.resblocks, target.resblocks, strict=False):
        copy.load_state_dict(block.state_dict())
