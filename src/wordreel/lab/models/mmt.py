"""The multi-modal transformer (Gabeur et al., 2020, arXiv 2007.10639).

Every row of every expert is a token: its projection, plus an embedding of the expert, plus one of the second
it was taken in. Each expert has one more token, begun from the maximum over its rows, whose output is the
expert's embedding of the video. Captions go through BERT and one gated embedding unit per expert.

The released code (`mode="released"`) also puts an empty [CLS] token first and begins a missing expert's token
from its projection's bias, where the paper says a zero vector.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from wordreel.lab.models import config as configs
from wordreel.lab.models.batch import (
    ExpertFeatures,
    JointEmbedding,
    QueryEmbeddings,
    TokenBatch,
    VideoEmbeddings,
    VideoFeatures,
    masked_max,
    masked_mean,
    unit,
)
from wordreel.lab.models.config import MMTConfig
from wordreel.lab.models.layers.expert_pooling import complete
from wordreel.lab.models.layers.gating import GatedEmbeddings, GatedPairs
from wordreel.lab.models.layers.transformer import EPSILON, Pooler, TransformerEncoder, init_weights
from wordreel.lab.models.text.caption_encoder import caption_encoder

AGGREGATE, UNKNOWN, FIRST = 0, 1, 2  # rows of the table of times; FIRST is the video's first second


class VideoTokens(NamedTuple):
    """[CLS if released], then for each expert its aggregate token and its rows."""

    features: Tensor  # [b, n, d]
    types: tuple[tuple[int, int], ...]  # (row of the table of experts, how many tokens), in order
    position_ids: Tensor  # [b, n] rows of the table of times
    mask: Tensor  # [b, n] bool
    answers: tuple[int, ...]  # where the experts' aggregate tokens stand

    @staticmethod
    def assemble(
        config: MMTConfig,
        features: list[ExpertFeatures],
        rows: list[Tensor] | None,
        aggregates: Tensor,
        present: Tensor,
        training: bool,
    ) -> VideoTokens:
        """Assemble the tokens of videos.

        `rows` are the projected rows by expert (None: aggregates only), `aggregates [b, experts, d]`.
        """
        batch, _, dim = aggregates.shape
        device = aggregates.device
        one = torch.zeros(batch, 1, dtype=torch.long, device=device)
        parts, position_ids, masks = [], [], []
        types: list[tuple[int, int]] = []
        answers: list[int] = []
        count = 0
        if config.mode == "released":
            parts.append(aggregates.new_zeros(batch, 1, dim))
            position_ids.append(one)
            masks.append(torch.ones_like(one, dtype=torch.bool))
            types.append((0, 1))
            count = 1
        for number, expert in enumerate(config.experts):
            answers.append(count)
            parts.append(aggregates[:, number, None])
            position_ids.append(one)
            masks.append(present[:, number, None])
            count += 1
            if rows is not None:
                seconds = time_positions(features[number], config.positions, expert.timed)
                if config.inputs == "shuffled":
                    seconds = shuffled(seconds, features[number].mask, training)
                parts.append(rows[number])
                position_ids.append(seconds)
                masks.append(features[number].mask)
                count += rows[number].shape[1]
            types.append((expert.type_id, count - answers[-1]))
        return VideoTokens(
            torch.cat(parts, dim=1),
            tuple(types),
            torch.cat(position_ids, dim=1),
            torch.cat(masks, dim=1),
            tuple(answers),
        )


def time_positions(features: ExpertFeatures, positions: int, timed: bool = True) -> Tensor:
    """Return the rows `[b, n]` of the table of times: 2 + ⌊t⌋, its last row at most.

    It is 1 for unknown times and padding.

    >>> rows, mask = torch.zeros(1, 3, 1), torch.tensor([[True, True, False]])
    >>> time_positions(ExpertFeatures(rows, mask, torch.tensor([[7.4, torch.nan, 0.5]])), 32)
    tensor([[9, 1, 1]])
    """
    if features.times is None or not timed:
        return torch.full_like(features.mask, UNKNOWN, dtype=torch.long)
    known = features.mask & torch.isfinite(features.times)
    seconds = torch.where(known, features.times, 0).clamp(0, positions - 1 - FIRST).long() + FIRST
    return torch.where(known, seconds, UNKNOWN)


def shuffled(position_ids: Tensor, mask: Tensor, training: bool) -> Tensor:
    """Swap times among an expert's real rows: at random in training, always the same otherwise."""
    batch, count = position_ids.shape
    if training:
        keys = torch.rand(batch, count, device=position_ids.device)
    else:
        # Fixed numbers that jump about: the fractional parts of multiples of the golden ratio.
        steps = torch.arange(1, count + 1, device=position_ids.device, dtype=torch.float64)
        keys = (steps * 0.6180339887498949 % 1.0).float().expand(batch, count)
    order = keys.masked_fill(~mask, 2.0).argsort(dim=1, stable=True)  # real rows first, in random order
    ranks = torch.where(mask, 0.0, 1.0).argsort(dim=1, stable=True)  # real rows first, in their own order
    return torch.zeros_like(position_ids).scatter(1, ranks, position_ids.gather(1, order))


class VideoTransformer(nn.Module):
    """Tokens `[b, n, d]` with expert and time numbers to hidden states `[b, n, d]`."""

    def __init__(self, config: configs.MMTConfig) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(config.positions, config.dim)
        self.token_type_embeddings = nn.Embedding(config.types, config.dim)
        self.LayerNorm = nn.LayerNorm(config.dim, eps=EPSILON)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = TransformerEncoder(
            config.layers, config.dim, config.heads, config.inner, config.dropout
        )
        self.pooler = Pooler(config.dim)
        self.apply(init_weights)

    def forward(self, tokens: VideoTokens) -> Tensor:
        table = self.token_type_embeddings.weight
        types = torch.cat([table[number].expand(count, -1) for number, count in tokens.types])  # [n, d]
        x = tokens.features + types + self.position_embeddings(tokens.position_ids)
        y: Tensor = self.encoder(self.dropout(self.LayerNorm(x)), tokens.mask)
        return y


class MMT(JointEmbedding):
    """Multi-modal Transformer: a transformer over the rows of all experts, with their times."""

    def __init__(self, config: configs.MMTConfig) -> None:
        super().__init__()
        self.config, self.rows, self.dim = config, config.names, config.dim
        self.settings = config
        many = len(config.experts)
        self.project = nn.ModuleList(nn.Linear(expert.dim, config.dim) for expert in config.experts)
        self.transformer = VideoTransformer(config) if config.encoder == "mmt" else None
        self.pairs = GatedPairs(many, config.dim, config.dropout) if config.encoder == "coll" else None
        self.caption = caption_encoder(config.text, config.mode)
        self.text = GatedEmbeddings(config.text.out, many, config.dim)
        self.mixture = nn.Linear(config.text.out, many)
        self.dropout = nn.Dropout(config.dropout)

    def embed_videos(self, video: VideoFeatures) -> VideoEmbeddings:
        features = complete(video, self.settings.experts)
        present = torch.stack([part.available for part in features], dim=1)
        aggregates = torch.stack(
            [self._aggregate(number, part) for number, part in enumerate(features)], dim=1
        )
        if self.transformer is not None:
            tokens = self._tokens(features, aggregates, present)
            states = self.transformer(tokens)
            vectors = unit(torch.stack([states[:, at] for at in tokens.answers], dim=1))
        elif self.pairs is not None:
            vectors = self.pairs(aggregates, present)
        else:
            vectors = unit(aggregates)
        available = present
        if self.settings.keeps_missing:  # all experts count, but a video with nothing at all has no embedding
            available = present.any(dim=1, keepdim=True).expand_as(present)
        return VideoEmbeddings(vectors * available[:, :, None], available)

    def embed_queries(self, text: TokenBatch) -> QueryEmbeddings:
        caption = self.caption(*text)
        return QueryEmbeddings(self.text(caption), self.mixture(self.dropout(caption)).softmax(dim=-1))

    def _aggregate(self, number: int, features: ExpertFeatures) -> Tensor:
        """`[b, d]`: the projected maximum or mean over an expert's rows."""
        pooled = features.pooled
        if pooled is None:
            pool = masked_mean if self.settings.aggregate == "mean" else masked_max
            pooled = pool(features.values, features.mask)
        pooled = torch.where(features.available[:, None], pooled, 0)
        projected = unit(self.project[number](pooled))
        if self.settings.mode == "paper":
            projected = projected * features.available[:, None]
        return projected

    def _tokens(self, features: list[ExpertFeatures], aggregates: Tensor, present: Tensor) -> VideoTokens:
        if self.settings.aggregate == "zero":
            aggregates = torch.zeros_like(aggregates)
        rows = None
        if self.settings.inputs != "pooled":
            rows = [unit(layer(torch.where(part.mask[:, :, None], part.values, 0)))
                    for layer, part in zip(self.project, features, strict=True)]  # fmt: skip
        return VideoTokens.assemble(self.settings, features, rows, aggregates, present, self.training)
