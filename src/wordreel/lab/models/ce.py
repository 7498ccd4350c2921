"""Collaborative experts (Liu et al., 2019, arXiv 1907.13487), and without its collaborative gating."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wordreel.lab.models import config as configs
from wordreel.lab.models.batch import (
    JointEmbedding,
    QueryEmbeddings,
    TokenBatch,
    VideoEmbeddings,
    VideoFeatures,
    unit,
)
from wordreel.lab.models.layers.expert_pooling import ExpertPooling
from wordreel.lab.models.layers.gating import CollaborativeGating, GatedEmbeddings, Gates
from wordreel.lab.models.moee import MixtureWeights
from wordreel.lab.models.text.caption_encoder import caption_encoder


class CE(JointEmbedding):
    """pool → unit(W f + b) per expert → gating among the experts; captions as in MoEE, rows of one size."""

    def __init__(self, config: configs.CEConfig) -> None:
        super().__init__()
        self.config, self.rows, self.dim = config, config.names, config.dim
        many, released = len(config.experts), config.mode == "released"
        self.masked_norm = not released
        self.pooling = ExpertPooling(config.experts, config.mode)
        self.project = nn.ModuleList(nn.Linear(expert.pooled, config.dim) for expert in config.experts)
        self.gating: CollaborativeGating | Gates
        if config.gating:
            self.gating = CollaborativeGating(
                many,
                config.dim,
                g_layers=config.g_layers,
                h_layers=config.h_layers,
                mish=config.mish,
                sequential=released if config.sequential is None else config.sequential,
                with_self=released if config.with_self is None else config.with_self,
                pairs=config.pairs or ("mean" if released else "sum"),
                masked_norm=self.masked_norm,
            )
        else:
            self.gating = Gates(many, config.dim)
        self.caption = caption_encoder(config.text, config.mode)
        self.text = GatedEmbeddings(config.text.out, many, config.dim)
        self.mixture = MixtureWeights(config.text.out, many, config.learned_weights)

    def embed_videos(self, video: VideoFeatures) -> VideoEmbeddings:
        pooled, available = self.pooling(video)
        projected = [unit(layer(x)) for layer, x in zip(self.project, pooled, strict=True)]
        vectors = self._gated(torch.stack(projected, dim=1), available)
        return VideoEmbeddings(vectors * available[:, :, None], available)

    def _gated(self, x: Tensor, available: Tensor) -> Tensor:
        if isinstance(self.gating, CollaborativeGating):
            gated: Tensor = self.gating(x, available)
            return gated
        return unit(self.gating(x, available if self.masked_norm else None))

    def embed_queries(self, text: TokenBatch) -> QueryEmbeddings:
        caption = self.caption(*text)
        return QueryEmbeddings(self.text(caption), self.mixture(caption))
