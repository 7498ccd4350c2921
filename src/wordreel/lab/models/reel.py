"""The default model as a torch module; `models/reel/runtime.py` does the same in NumPy.

    token = (sign(x) √|x| − mean) / deviation                           each segment of each expert's features
    x ← x + attention(LN x),   x ← x + W₂ gelu(W₁ LN x + b₁) + b₂       over all tokens and a learned first
    video = unit(Wₒ x₀ + bₒ),   text = unit(A s' + a + W gelu(V s' + v) + w),   s' = LN(sentence vector)

The square root tames the long tails of pooled activations; mean and deviation are those of the training rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wordreel.lab.models.batch import (
    ExpertFeatures,
    QueryEmbeddings,
    TokenBatch,
    VideoEmbeddings,
    VideoFeatures,
)
from wordreel.lab.models.config import ReelConfig
from wordreel.lab.models.joint_embedding import JointEmbedding
from wordreel.lab.models.layers.expert_pooling import complete
from wordreel.lab.models.text.caption_encoder import caption_encoder
from wordreel.models.reel.runtime import ROW

LEAST_DEVIATION = 1e-3


class FeatureScaling(nn.Module):
    """`(sign(x) √|x| − mean) / deviation`: buffers, since the training set determines them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("deviation", torch.ones(dim))

    @torch.no_grad()
    def fit(self, rows: Tensor) -> None:
        """From training rows `[n, dim]`, rounded to float16 as the exported file stores them."""
        if not len(rows):
            rows = torch.zeros(1, len(self.mean), device=rows.device)
        x = signed_sqrt(rows.float())
        self.mean.copy_(x.mean(dim=0).half())
        self.deviation.copy_((x.std(dim=0, correction=0) + LEAST_DEVIATION).half())

    def forward(self, x: Tensor) -> Tensor:
        return (signed_sqrt(x.float()) - self.mean) / self.deviation


class TextHead(nn.Module):
    """Sentence vectors to the joint space: a linear part and a two-layer one."""

    def __init__(self, dim: int, hidden: int, out: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.first, self.last = nn.Linear(dim, hidden), nn.Linear(hidden, out)
        self.straight = nn.Linear(dim, out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, sentences: Tensor) -> Tensor:
        x = self.norm(sentences)
        y: Tensor = self.straight(x) + self.last(self.dropout(F.gelu(self.first(x))))
        return y


class ReelModule(JointEmbedding):
    def __init__(self, config: ReelConfig) -> None:
        super().__init__()
        self.config, self.settings, self.rows, self.dim = config, config, (ROW,), config.dim
        self.scaling = nn.ModuleList(FeatureScaling(expert.dim) for expert in config.experts)
        self.project = nn.ModuleList(nn.Linear(expert.dim, config.dim) for expert in config.experts)
        self.kinds = nn.Parameter(
            torch.randn(len(config.experts) + 1, config.dim) * 0.02
        )  # last: the first token
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.dim,
                config.heads,
                config.inner,
                config.dropout,
                "gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(config.layers)
        )
        self.out = nn.Linear(config.dim, config.dim)
        self.caption = caption_encoder(config.text)
        self.text_head = TextHead(config.text.out, config.hidden, config.dim, config.dropout)

    def fit_features(self, rows: Mapping[str, Tensor]) -> None:
        """The scale of every expert, from the rows of the training items."""
        for expert, scaling in zip(self.settings.experts, self.scaling, strict=True):
            assert isinstance(scaling, FeatureScaling)  # noqa: S101 - the list holds nothing else
            scaling.fit(rows.get(expert.name, torch.zeros(0, expert.dim)).to(scaling.mean.device))

    def embed_videos(self, video: VideoFeatures) -> VideoEmbeddings:
        features = complete(video, self.settings.experts)
        items = len(features[0].mask)
        tokens = [self.kinds[-1].expand(items, 1, -1)]
        real = [torch.ones(items, 1, dtype=torch.bool, device=self.kinds.device)]
        for number, part in enumerate(features):
            tokens.append(self._tokens(number, part))
            real.append(part.mask)
        x, padding = torch.cat(tokens, dim=1), ~torch.cat(real, dim=1)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        available = torch.stack([part.available for part in features], dim=1).any(dim=1, keepdim=True)
        vectors = F.normalize(self.out(x[:, 0]).float(), dim=-1)[:, None]
        return VideoEmbeddings(vectors * available[:, :, None], available)

    def _tokens(self, number: int, features: ExpertFeatures) -> Tensor:
        """`[b, n, dim]`; what stands in padding is finite and never looked at."""
        scaled = self.scaling[number](torch.where(features.mask[:, :, None], features.values, 0))
        dropped = F.dropout(scaled, self.settings.input_dropout, self.training)
        y: Tensor = self.project[number](dropped) + self.kinds[number]
        return y

    def embed_queries(self, text: TokenBatch) -> QueryEmbeddings:
        vectors = F.normalize(self.text_head(self.caption(*text)).float(), dim=-1)[:, None]
        return QueryEmbeddings(vectors, torch.ones_like(vectors[:, :, 0]))


def signed_sqrt(x: Tensor) -> Tensor:
    return torch.sign(x) * torch.sqrt(torch.abs(x))
