"""BERT, GPT and GPT-2 as caption networks, under the names their published weights use."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from wordreel.lab.models.config import TransformerConfig
from wordreel.lab.models.layers.transformer import EPSILON, Pooler, TransformerEncoder, init_weights


class BertEmbeddings(nn.Module):
    """Embed tokens: LN(word + position + segment 0), then dropout."""

    def __init__(self, size: TransformerConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(size.vocabulary, size.hidden, padding_idx=0)
        self.position_embeddings = nn.Embedding(size.positions, size.hidden)
        self.token_type_embeddings = nn.Embedding(size.types, size.hidden)
        self.LayerNorm = nn.LayerNorm(size.hidden, eps=EPSILON)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        position = self.position_embeddings.weight[: ids.shape[1]] + self.token_type_embeddings.weight[0]
        x: Tensor = self.dropout(self.LayerNorm(self.word_embeddings(ids) + position))
        return x


class Bert(nn.Module):
    """`ids [q, t]` and `mask [q, t]` to hidden states `[q, t, hidden]`."""

    def __init__(self, size: TransformerConfig) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(size)
        self.encoder = TransformerEncoder(size.layers, size.hidden, size.heads, size.inner, size.dropout)
        self.pooler = Pooler(size.hidden)
        self.apply(init_weights)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x: Tensor = self.encoder(self.embeddings(ids), mask)
        return x


class Conv1D(nn.Module):
    """x W + b with W `[in, out]`, the way GPT's weights lie."""

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, out) * 0.02)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class CausalAttention(nn.Module):
    """Attend to the tokens before, as GPT does."""

    def __init__(self, size: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.dropout_p = size.heads, size.dropout
        self.c_attn = Conv1D(size.hidden, 3 * size.hidden)
        self.c_proj = Conv1D(size.hidden, size.hidden)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = [
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=-1)
        ]
        dropout_p = self.dropout_p if self.training else 0.0
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout_p)
        y: Tensor = self.dropout(self.c_proj(mixed.transpose(1, 2).flatten(2)))
        return y


class Feed(nn.Module):
    """Apply the feed-forward network of a GPT block."""

    def __init__(self, size: TransformerConfig) -> None:
        super().__init__()
        self.c_fc = Conv1D(size.hidden, size.inner)
        self.c_proj = Conv1D(size.inner, size.hidden)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.dropout(self.c_proj(gelu(self.c_fc(x), approximate="tanh")))
        return y


class GptBlock(nn.Module):
    """GPT normalises after each step, GPT-2 before."""

    def __init__(self, size: TransformerConfig, before: bool) -> None:
        super().__init__()
        self.before = before
        self.ln_1 = nn.LayerNorm(size.hidden)
        self.attn = CausalAttention(size)
        self.ln_2 = nn.LayerNorm(size.hidden)
        self.mlp = Feed(size)

    def forward(self, x: Tensor) -> Tensor:
        if self.before:
            x = x + self.attn(self.ln_1(x))
            y: Tensor = x + self.mlp(self.ln_2(x))
        else:
            x = self.ln_1(x + self.attn(x))
            y = self.ln_2(x + self.mlp(x))
        return y


class Gpt(nn.Module):
    """The hidden states of OpenAI's GPT (2018) and GPT-2 (2019): a token sees only those before it.

    Padding stands at the end, so no real token sees it and no mask is needed.
    """

    def __init__(self, size: TransformerConfig, second: bool) -> None:
        super().__init__()
        names = ("wte", "wpe") if second else ("tokens_embed", "positions_embed")
        self.words_name, self.positions_name = names
        self.add_module(names[0], nn.Embedding(size.vocabulary, size.hidden))
        self.add_module(names[1], nn.Embedding(size.positions, size.hidden))
        self.dropout = nn.Dropout(size.dropout)
        self.h = nn.ModuleList(GptBlock(size, before=second) for _ in range(size.layers))
        self.ln_f = nn.LayerNorm(size.hidden) if second else None
        self.apply(init_weights)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        words, table = self.get_submodule(self.words_name), self.get_submodule(self.positions_name)
        x: Tensor = self.dropout(words(ids) + table(positions))
        for block in self.h:
            x = block(x)
        if self.ln_f is not None:
            x = self.ln_f(x)
        return x
