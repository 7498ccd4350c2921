"""Captions as token ids, encoded once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from wordreel.backbones.tokenizer import ClipTokenizer, clip_tokenizer
from wordreel.backbones.tokenizer_files import FILES, TOKENIZER, from_folder
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.clip.video_text import CaptionBatch
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.video.recipe import VideoRecipe
from wordreel.models.model_store import find_checkpoint
from wordreel.types import Int64

BLOCK = 4096


def tokenizer_content(recipe: VideoRecipe, file: Path | None = None) -> str | None:
    """The tokenizer in a file, or of what training starts from; None: CLIP's own."""
    start, backbone = recipe.start, recipe.model.backbone
    if file is None and start.model:
        stored = find_checkpoint(Path(start.model).expanduser()) / TOKENIZER
        file = stored if stored.is_file() else None
    if file is not None:
        return file.read_text(encoding="utf-8")
    folder = Path(start.backbone).expanduser()
    if not start.backbone or not any((folder / name).is_file() for name in FILES):
        return None
    return from_folder(folder, backbone.tokenizer, backbone.text.vocabulary)


@dataclass(frozen=True)
class CaptionIds:
    """`ids [captions, words]`, padded with 0, and how many of each are tokens."""

    ids: Int64
    lengths: Int64

    @staticmethod
    def of(pairs: Pairs, model: VideoTextConfig, tokenizer: str | None = None) -> CaptionIds:
        """Encode the captions of pairs, with the tokenizer of that content or with CLIP's."""
        config = model.backbone.tokenizer
        opened = (
            clip_tokenizer(length=config.length) if tokenizer is None else ClipTokenizer(tokenizer, config)
        )
        texts, ids, lengths = pairs.texts, [], []
        for start in range(0, len(texts), BLOCK):
            some, mask = opened.encode(texts[start : start + BLOCK], model.max_words)
            ids.append(some)
            lengths.append(mask.sum(axis=1))
        return CaptionIds(np.concatenate(ids), np.concatenate(lengths))

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, numbers: Int64, device: torch.device, longest: int | None = None) -> CaptionBatch:
        """Return these captions, padded to `longest` or to the longest of them.

        The mask is made of the lengths: id 0, which pads, is also the token of a "!" inside a word.
        """
        lengths = self.lengths[numbers]
        longest = int(lengths.max()) if longest is None else longest
        mask = torch.from_numpy(np.arange(longest) < lengths[:, None])
        ids = torch.from_numpy(self.ids[numbers, :longest])
        return CaptionBatch(ids.to(device, non_blocking=True), mask.to(device, non_blocking=True))
