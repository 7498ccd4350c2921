"""CLIP's two towers (arXiv 2103.00020) in torch, with the parameter names of OpenAI's checkpoints.

Every frame of every video passes through one image tower: pixels come as `[b, frames, 3, size, size]`, so
that what needs to know which frames belong together (a 3-D patch, a shift of tokens) finds them side by side.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from wordreel.lab.models.clip.config import Activation, ClipConfig, TextTowerConfig, VisionTowerConfig

MAX_LOGIT_SCALE = math.log(100)
FIRST_LOGIT_SCALE = math.log(1 / 0.07)

TokenShift = Callable[[Tensor, Tensor | None], Tensor]
"""Moves tokens between the frames of a video: `[b, frames, tokens, width]`, and which frames are real
`[b, frames]` if that is known, to the same shape."""
BlockShift = Callable[[Tensor], Tensor]
"""The same as a block sees it: `[b · frames, tokens, width]` to the same shape."""


class QuickGELU(nn.Module):
    """x · σ(1.702 x)."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[Activation, Callable[[], nn.Module]] = {
    "quick_gelu": QuickGELU, "gelu": nn.GELU, "gelu_tanh": partial(nn.GELU, "tanh"),
}  # fmt: skip


class BatchFirstAttention(nn.Module):
    """`nn.MultiheadAttention` of batch-first tokens, with its parameters and its first weights."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not share {width} numbers evenly")
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attend over `x [b, n, width]`.

        `mask` is added to the scores `[b, heads, n, n]` and broadcast to them.
        """
        b, n, width = x.shape
        qkv = linear(x, self.in_proj_weight, self.in_proj_bias).view(b, n, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mask = None if mask is None else mask.to(query.dtype)
        y = scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)
        out: Tensor = self.out_proj(y.transpose(1, 2).reshape(b, n, width))
        return out


class ResidualAttentionBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)). `shift` moves what attention reads, not the residual."""

    def __init__(self, width: int, heads: int, mlp: int, activation: Activation, epsilon: float) -> None:
        super().__init__()
        self.attn = BatchFirstAttention(width, heads)
        self.ln_1 = nn.LayerNorm(width, epsilon)
        steps = (
            ("c_fc", nn.Linear(width, mlp)),
            ("gelu", ACTIVATIONS[activation]()),
            ("c_proj", nn.Linear(mlp, width)),
        )
        self.mlp = nn.Sequential(OrderedDict(steps))
        self.ln_2 = nn.LayerNorm(width, epsilon)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, causal: bool = False, shift: BlockShift | None = None
    ) -> Tensor:
        inner = self.ln_1(x)
        x = x + self.attn(inner if shift is None else shift(inner), mask, causal)
        y: Tensor = x + self.mlp(self.ln_2(x))
        return y


class Transformer(nn.Module):
    """Blocks one after the other; with `gradient_checkpointing` backward computes their insides again."""

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        mlp: int | None = None,
        activation: Activation = "quick_gelu",
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.width = width
        self.gradient_checkpointing = False
        self.resblocks = nn.ModuleList(
            ResidualAttentionBlock(width, heads, mlp or 4 * width, activation, epsilon) for _ in range(depth)
        )

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        shifts: Mapping[int, BlockShift] | None = None,
    ) -> Tensor:
        """Pass `x [b, n, width]` through all blocks.

        `shifts`: block number → what happens to `[b, n, width]` between its first norm and attention.
        """
        saving = self.gradient_checkpointing and self.training and torch.is_grad_enabled()
        for number, block in enumerate(self.resblocks):
            run = partial(checkpoint, block, use_reentrant=False) if saving else block
            x = run(x, mask, causal, (shifts or {}).get(number))
        return x

    def init_text(self) -> None:
        """Draw OpenAI's first weights of a text tower."""
        out = self.width**-0.5 * (2 * len(self.resblocks)) ** -0.5
        spreads = {
            "attn.in_proj_weight": self.width**-0.5,
            "attn.out_proj.weight": out,
            "mlp.c_fc.weight": (2 * self.width) ** -0.5,
            "mlp.c_proj.weight": out,
        }
        for block in self.resblocks:
            for name, spread in spreads.items():
                nn.init.normal_(block.get_parameter(name), std=spread)


class ImageTower(nn.Module):
    """A vision transformer whose class token becomes the frame's embedding.

    `patch_3d` replaces the patch projection by one over three neighbouring frames (CLIP4Clip's "3d linear
    projection"): `conv2`, which starts as `conv1` in the middle and zeros around it.
    """

    def __init__(
        self,
        config: VisionTowerConfig,
        dim: int,
        *,
        patch_3d: bool = False,
        shifts: Mapping[int, TokenShift] | None = None,
    ) -> None:
        super().__init__()
        width, patch, scale = config.width, config.patch, config.width**-0.5
        self.shifts = dict(shifts or {})
        self.conv1 = nn.Conv2d(3, width, patch, patch, bias=False)
        self.conv2: nn.Conv3d | None = None
        if patch_3d:
            self.conv2 = nn.Conv3d(3, width, (3, patch, patch), (1, patch, patch), (1, 0, 0), bias=False)
        self.class_embedding = nn.Parameter(scale * torch.randn(width))
        self.positional_embedding = nn.Parameter(scale * torch.randn((config.size // patch) ** 2 + 1, width))
        self.ln_pre = nn.LayerNorm(width, config.epsilon)
        self.transformer = Transformer(
            width, config.depth, config.heads, config.mlp, config.activation, config.epsilon
        )
        self.ln_post = nn.LayerNorm(width, config.epsilon)
        self.proj = nn.Parameter(scale * torch.randn(width, dim))
        self.init_patch_3d()

    def init_patch_3d(self) -> None:
        """Start the 3-D patch as the 2-D one: each frame alone."""
        if self.conv2 is not None:
            with torch.no_grad():
                self.conv2.weight.zero_()
                self.conv2.weight[:, :, 1] = self.conv1.weight

    def forward(self, pixels: Tensor, mask: Tensor | None = None, all_tokens: bool = False) -> Tensor:
        """Embed `pixels [b, frames, 3, size, size]`.

        Return `[b, frames, dim]`, or `[b, frames, tokens, dim]`.

        The class token is the first; every token passes the last norm and the projection. `mask [b, frames]`
        tells shifts which frames are real.
        """
        b, frames = pixels.shape[:2]
        pixels = pixels.to(self.conv1.weight.dtype)
        if self.conv2 is None:
            patches = self.conv1(pixels.flatten(0, 1)).flatten(2)
        else:
            patches = self.conv2(pixels.transpose(1, 2)).transpose(1, 2).flatten(0, 1).flatten(2)
        patches = patches.transpose(1, 2)
        first = self.class_embedding.to(patches.dtype).expand(patches.shape[0], 1, -1)
        x = self.ln_pre(torch.cat([first, patches], dim=1) + self.positional_embedding)
        shifts = {number: partial(_per_video, shift, frames, mask) for number, shift in self.shifts.items()}
        x = self.transformer(x, shifts=shifts)
        y: Tensor = self.ln_post(x if all_tokens else x[:, 0]) @ self.proj
        return y.view(b, frames, *y.shape[1:])


def _per_video(shift: TokenShift, frames: int, mask: Tensor | None, x: Tensor) -> Tensor:
    return shift(x.view(-1, frames, *x.shape[1:]), mask).flatten(0, 1)


class ClipTowers(nn.Module):
    """Both towers and the logit scale; the state is that of an OpenAI checkpoint.

    `shifts` maps numbers of image blocks (from 0) to shifts of tokens between frames.
    """

    def __init__(
        self, config: ClipConfig, *, patch_3d: bool = False, shifts: Mapping[int, TokenShift] | None = None
    ) -> None:
        super().__init__()
        text = config.text
        self.config = config
        self.visual = ImageTower(config.vision, config.dim, patch_3d=patch_3d, shifts=shifts)
        self.transformer = Transformer(
            text.width, text.depth, text.heads, text.mlp, text.activation, text.epsilon
        )
        self.token_embedding = nn.Embedding(text.vocabulary, text.width)
        self.positional_embedding = nn.Parameter(torch.empty(text.length, text.width))
        self.ln_final = nn.LayerNorm(text.width, text.epsilon)
        self.text_projection = nn.Parameter(torch.empty(text.width, config.dim))
        self.logit_scale = nn.Parameter(torch.tensor(FIRST_LOGIT_SCALE))
        self._init_text(text)

    def _init_text(self, text: TextTowerConfig) -> None:
        nn.init.normal_(self.token_embedding.weight, std=0.02)
        nn.init.normal_(self.positional_embedding, std=0.01)
        nn.init.normal_(self.text_projection, std=text.width**-0.5)
        self.transformer.init_text()

    def set_gradient_checkpointing(self, on: bool = True) -> None:
        """Trade time for memory: about a third more arithmetic, activations of one block at a time."""
        self.visual.transformer.gradient_checkpointing = on
        self.transformer.gradient_checkpointing = on

    def frames(self, pixels: Tensor) -> Tensor:
        """Embed pictures `[b, frames, 3, size, size]` as `[b, frames, dim]`."""
        features: Tensor = self.visual(pixels)
        return features

    def frame_tokens(self, pixels: Tensor, mask: Tensor | None = None) -> Tensor:
        """Embed pictures `[b, frames, 3, size, size]` as `[b, frames, tokens, dim]`.

        The frame's own embedding comes first.
        """
        tokens: Tensor = self.visual(pixels, mask, all_tokens=True)
        return tokens

    def text_tokens(self, ids: Tensor) -> Tensor:
        """Turn `ids [q, n]` into the projected states of all tokens `[q, n, dim]`."""
        x = self.token_embedding(ids) + self.positional_embedding[: ids.shape[1]]
        x = self.transformer(x.to(self.text_projection.dtype), causal=True)
        tokens: Tensor = self.ln_final(x) @ self.text_projection
        return tokens

    def texts(self, ids: Tensor) -> Tensor:
        """Turn `ids [q, n]` into caption embeddings `[q, dim]`: the state of the end-of-text token."""
        return end_states(self.text_tokens(ids), ids)

    def scale(self) -> Tensor:
        """Return what cosines are multiplied by."""
        return self.logit_scale.exp()

    def clamp_logit_scale(self) -> None:
        """Keep the logit scale at 100 or below; called after every step."""
        with torch.no_grad():
            self.logit_scale.clamp_(max=MAX_LOGIT_SCALE)


def end_states(tokens: Tensor, ids: Tensor) -> Tensor:
    """Return the states `[q, dim]` of the first end-of-text tokens: the largest id of each caption."""
    return tokens[torch.arange(ids.shape[0], device=ids.device), ids.argmax(dim=-1)]
