"""The default model as a torch module; `models/reel/tower.py` does the same without torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wordreel.models.reel.shape import DIM, HEADS, HIDDEN, LAYERS, SEEN, TEXT, WIDE
from wordreel.training.reel.settings import Settings


class Caption(nn.Module):
    """Sentence vectors to the joint space: a straight part and a two-layer one."""

    def __init__(self, drop: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(TEXT)
        self.first, self.last = nn.Linear(TEXT, HIDDEN), nn.Linear(HIDDEN, DIM)
        self.straight = nn.Linear(TEXT, DIM)
        self.drop = nn.Dropout(drop)

    def forward(self, sentences: Tensor) -> Tensor:
        x = self.norm(sentences)
        made: Tensor = self.straight(x) + self.last(self.drop(F.gelu(self.first(x))))
        return made


class Tower(nn.Module):
    """Both sides of the joint space, on the scale of `models/reel/stretches.scaled`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.into = nn.ModuleDict({seen.name: nn.Linear(seen.dim, DIM) for seen in SEEN})
        self.kinds = nn.Parameter(torch.randn(len(SEEN) + 1, DIM) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                DIM, HEADS, WIDE, settings.drop, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(LAYERS)
        )
        self.out = nn.Linear(DIM, DIM)
        self.caption = Caption(settings.drop)
        self.sharpness = nn.Parameter(torch.tensor(math.log(1 / settings.temperature)))

    def video(self, tokens: dict[str, Tensor], kept: dict[str, Tensor]) -> Tensor:
        """Unit vectors `[items, dim]` of `tokens[expert] [items, most, dim]`, of which some are `kept`."""
        items = len(kept[SEEN[0].name])
        rows = [self.kinds[-1].expand(items, 1, -1)]
        there = [torch.ones(items, 1, dtype=torch.bool, device=self.kinds.device)]
        for number, seen in enumerate(SEEN):
            dropped = F.dropout(tokens[seen.name], self.settings.input_drop, self.training)
            rows.append(self.into[seen.name](dropped) + self.kinds[number])
            there.append(kept[seen.name])
        x, absent = torch.cat(rows, dim=1), ~torch.cat(there, dim=1)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=absent)
        return F.normalize(self.out(x[:, 0]).float(), dim=-1)

    def text(self, sentences: Tensor) -> Tensor:
        """Unit vectors `[texts, dim]` of sentence vectors."""
        return F.normalize(self.caption(sentences).float(), dim=-1)

    def similarities(self, text: Tensor, video: Tensor) -> Tensor:
        """Sharpened cosines `[texts, items]`, for the loss."""
        sharp: Tensor = self.sharpness.exp().clamp(max=100)
        return text @ video.T * sharp
