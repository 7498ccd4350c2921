"""Captions as token ids, encoded once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from wordreel.models.clip.config import VideoTextConfig
from wordreel.nets.clip.tokenizer import ClipTokenizer, clip_tokenizer
from wordreel.training.data.pairs import Pairs
from wordreel.types import Int64

TOKENIZER = "tokenizer.json"
BLOCK = 4096


@dataclass(frozen=True)
class CaptionIds:
    """`ids [captions, words]`, padded with 0, and how many of each are tokens."""

    ids: Int64
    lengths: Int64

    @staticmethod
    def of(pairs: Pairs, model: VideoTextConfig, tokenizer: Path | None = None) -> CaptionIds:
        """Encode the captions of pairs, with the tokenizer in a file or with CLIP's."""
        config = model.backbone.tokenizer
        opened = (
            clip_tokenizer(length=config.length)
            if tokenizer is None
            else ClipTokenizer.from_file(tokenizer, config)
        )
        texts, ids, lengths = pairs.texts, [], []
        for start in range(0, len(texts), BLOCK):
            some, mask = opened.encode(texts[start : start + BLOCK], model.max_words)
            ids.append(some)
            lengths.append(mask.sum(axis=1))
        return CaptionIds(np.concatenate(ids), np.concatenate(lengths))

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, numbers: Int64) -> Tensor:
        """`[b, words]` of these captions, as long as the longest of them."""
        return torch.from_numpy(self.ids[numbers, : int(self.lengths[numbers].max())])
