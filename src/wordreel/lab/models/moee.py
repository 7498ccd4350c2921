"""Mixture of embedding experts (Miech et al., 2018, arXiv 1804.02516), and the plain concatenation.

Each expert's pooled features and the pooled caption meet in a space of the expert's own size through gated
embedding units; a linear layer and a softmax on the caption give the mixture weights. The rows of an
embedding are filled up with zeros to the largest expert, which changes no inner product.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from wordreel.lab.models import config as configs
from wordreel.lab.models.batch import (
    JointEmbedding,
    QueryEmbeddings,
    TokenBatch,
    VideoEmbeddings,
    VideoFeatures,
)
from wordreel.lab.models.layers.expert_pooling import ExpertPooling
from wordreel.lab.models.layers.gating import UnevenEmbeddings
from wordreel.lab.models.text.caption_encoder import caption_encoder


class MoEE(JointEmbedding):
    """Mixture of Embedding Experts: one gated embedding per expert, weighted by the caption."""

    def __init__(self, config: configs.MoEEConfig) -> None:
        super().__init__()
        self.config, self.rows = config, config.names
        sizes = [expert.dim for expert in config.experts]
        self.dim = max(sizes)
        self.counts_missing = config.mode == "released"
        self.pooling = ExpertPooling(config.experts, config.mode)
        self.video = UnevenEmbeddings([expert.pooled for expert in config.experts], sizes)
        self.caption = caption_encoder(config.text, config.mode)
        self.text = UnevenEmbeddings([config.text.out] * len(sizes), sizes)
        self.mixture = MixtureWeights(config.text.out, len(sizes), config.learned_weights)

    def embed_videos(self, video: VideoFeatures) -> VideoEmbeddings:
        pooled, available = self.pooling(video)
        vectors = self.video(pooled, None if self.counts_missing else available)
        return VideoEmbeddings(vectors * available[:, :, None], available)

    def embed_queries(self, text: TokenBatch) -> QueryEmbeddings:
        caption = self.caption(*text)
        return QueryEmbeddings(self.text([caption] * len(self.rows)), self.mixture(caption))


class MixtureWeights(nn.Module):
    """softmax(W h + b) over the experts, or 1/m for each of them (W is then carried and not used)."""

    def __init__(self, dim: int, many: int, learned: bool = True) -> None:
        super().__init__()
        self.fc = nn.Linear(dim, many).requires_grad_(learned)
        self.learned = learned

    def forward(self, caption: Tensor) -> Tensor:
        if self.learned:
            scores: Tensor = self.fc(caption)
            return scores.softmax(dim=-1)
        many = self.fc.out_features
        return caption.new_full((caption.shape[0], many), 1 / many)


class Concat(JointEmbedding):
    """All pooled experts end to end, against the pooled caption, as one row; the shorter side ends in zeros.

    The released code loses the video where the caption is the longer one (every similarity is then 0), which
    is how the CE paper's table 6 came by its row; `mode="released"` does the same.
    """

    def __init__(self, config: configs.ConcatConfig) -> None:
        super().__init__()
        self.config, self.rows = config, ("all",)
        self.pooling = ExpertPooling(config.experts, config.mode)
        self.caption = caption_encoder(config.text, config.mode)
        self.mixture = MixtureWeights(config.text.out, len(config.experts), learned=False)
        self.length = sum(expert.pooled for expert in config.experts)
        self.dim = max(self.length, config.text.out)
        self.released = config.mode == "released"
        self.lost = self.released and config.text.out > self.length

    def embed_videos(self, video: VideoFeatures) -> VideoEmbeddings:
        pooled, available = self.pooling(video)
        if not self.released:  # the released code keeps what NetVLAD makes of no rows
            pooled = [x * available[:, i, None] for i, x in enumerate(pooled)]
        whole = torch.cat(pooled, dim=1)
        whole = pad(whole, (0, self.dim - self.length))[:, None]
        return VideoEmbeddings(whole * (not self.lost), available.any(dim=1, keepdim=True))

    def embed_queries(self, text: TokenBatch) -> QueryEmbeddings:
        caption = self.caption(*text)
        vectors = pad(caption, (0, self.dim - caption.shape[1]))[:, None]
        return QueryEmbeddings(vectors, vectors.new_ones(vectors.shape[:2]))
