"""The transformer encoder of BERT (Devlin et al., 2019): post-norm layers, exact GELU, BERT's own names.

    x ← LN(x + drop(attention(x))),   x ← LN(x + drop(W₂ gelu(W₁ x + b₁) + b₂))

Masked keys get −10,000 added to their scores, which in float32 and bfloat16 leaves them a weight of exactly 0
unless every key is masked.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention

EPSILON = 1e-12
MASKED = -10_000.0
SPREAD = 0.02  # standard deviation of the first weights


class Output(nn.Module):
    """Add to the residual: LN(residual + drop(W x + b))."""

    def __init__(self, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(dim, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        y: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + residual)
        return y


class SelfAttention(nn.Module):
    """Attend in each head: softmax(q kᵀ / √d + mask) v."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        if hidden % heads:
            raise ValueError(f"{hidden} numbers cannot be shared by {heads} heads")
        self.heads, self.dropout_p = heads, dropout
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        # A compiler lays the matrices side by side while it casts them; alone, the copy costs what it saves.
        parts = self.at_once(x) if torch.compiler.is_compiling() else self.one_by_one(x)
        q, k, v = [part.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for part in parts]
        dropout_p = self.dropout_p if self.training else 0.0
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout_p)
        return mixed.transpose(1, 2).flatten(2)

    def one_by_one(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.query(x), self.key(x), self.value(x)

    def at_once(self, x: Tensor) -> tuple[Tensor, ...]:
        """Attend in one product: on a GPU a third of the kernels, forwards and backwards."""
        three = (self.query, self.key, self.value)
        weight = torch.cat([f.weight for f in three])
        return linear(x, weight, torch.cat([f.bias for f in three])).chunk(3, dim=-1)


class AttentionLayer(nn.Module):
    """Attend, then add to the residual."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.self = SelfAttention(hidden, heads, dropout)
        self.output = Output(hidden, hidden, dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y: Tensor = self.output(self.self(x, mask), x)
        return y


class Intermediate(nn.Module):
    """Apply the first half of a block's feed-forward network."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, inner)

    def forward(self, x: Tensor) -> Tensor:
        return gelu(self.dense(x))


class Layer(nn.Module):
    """Apply one block: attention, then a feed-forward network."""

    def __init__(self, hidden: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.attention = AttentionLayer(hidden, heads, dropout)
        self.intermediate = Intermediate(hidden, inner)
        self.output = Output(inner, hidden, dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention(x, mask)
        y: Tensor = self.output(self.intermediate(x), x)
        return y


class TransformerEncoder(nn.Module):
    """`x [b, n, hidden]` and `mask [b, n]` (True: real) to `[b, n, hidden]`."""

    def __init__(self, layers: int, hidden: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(hidden, heads, inner, dropout) for _ in range(layers))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        added = torch.zeros_like(mask, dtype=x.dtype).masked_fill(~mask, MASKED)[:, None, None, :]
        for layer in self.layer:
            x = layer(x, added)
        return x


class Pooler(nn.Module):
    """Carried by published models and never used here: counted, loaded and saved, not trained."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        self.requires_grad_(False)


def init_weights(module: nn.Module) -> None:
    """Draw BERT's first weights: N(0, 0.02²), biases 0, norms 1; for `module.apply`."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=SPREAD)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
