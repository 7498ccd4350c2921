"""MPNet (Song et al., 2020) as a sentence encoder: BERT's layers with one relative position bias for all.

    scores = q kᵀ / √d + bias[bucket(j − i)],    sentence = unit(mean of the last layer over the tokens)

Reads a folder as sentence-transformers writes it: `model.safetensors` and `tokenizer.json`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from wordreel.types import Float32

PADDING = 1  # the token; positions are counted from the number after it
BUCKETS, FARTHEST = 32, 128
EPSILON = 1e-5
MAX_TOKENS = 128
BATCH = 64


def buckets(length: int) -> Tensor:
    """`[length, length]`: the bias of each pair of positions. Near distances have one each, far ones share.

    >>> buckets(3).tolist()
    [[0, 17, 18], [1, 0, 17], [2, 1, 0]]
    """
    at = torch.arange(length)
    ahead = at[None, :] - at[:, None]
    half, far = BUCKETS // 2, ahead.abs()
    near = half // 2
    steps = torch.log(far.clamp(min=1).float() / near) / math.log(FARTHEST / near) * (half - near)
    shared = (near + steps.long()).clamp(max=half - 1)
    return torch.where(far < near, far, shared) + half * (ahead > 0)


def sentences(weights: Mapping[str, Tensor], heads: int, ids: Tensor, mask: Tensor) -> Tensor:
    """`[texts, dim]` unit vectors of token ids and of a mask that is 1 where they are real."""

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], EPSILON)

    texts, length = ids.shape
    positions = torch.cumsum(mask, dim=1) * mask + PADDING
    words = weights["embeddings.word_embeddings.weight"][ids]
    x = norm(words + weights["embeddings.position_embeddings.weight"][positions], "embeddings.LayerNorm")
    relative = weights["encoder.relative_attention_bias.weight"][buckets(length)].permute(2, 0, 1)
    bias = relative[None].masked_fill(mask[:, None, None] == 0, -torch.inf)
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    for number in range(layers):
        at = f"encoder.layer.{number}"
        q, k, v = (
            linear(x, f"{at}.attention.attn.{name}").view(texts, length, heads, -1).transpose(1, 2)
            for name in "qkv"
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(2)
        x = norm(x + linear(mixed, f"{at}.attention.attn.o"), f"{at}.attention.LayerNorm")
        wide = F.gelu(linear(x, f"{at}.intermediate.dense"))
        x = norm(x + linear(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    real = mask[..., None].to(x.dtype)
    return F.normalize((x * real).sum(dim=1) / real.sum(dim=1), dim=1)


class MPNet:
    """all-mpnet-base-v2, or another of its shape."""

    def __init__(self, folder: Path, heads: int = 12) -> None:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        self._heads = heads
        self._weights = {
            name.removeprefix("mpnet."): array
            for name, array in load_file(folder / "model.safetensors").items()
        }
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> Float32:
        """`[texts, dim]` unit vectors."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(tokens)), key=lambda number: len(tokens[number]))
        rows: list[Tensor] = [torch.zeros(0)] * len(tokens)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            ids = torch.full((len(chosen), len(tokens[chosen[-1]])), PADDING)
            for row, number in enumerate(chosen):
                ids[row, : len(tokens[number])] = torch.tensor(tokens[number])
            vectors = sentences(self._weights, self._heads, ids, (ids != PADDING).long())
            for number, vector in zip(chosen, vectors, strict=True):
                rows[number] = vector
        found: Float32 = torch.stack(rows).numpy()
        return found
