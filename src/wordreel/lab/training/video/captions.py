"""Captions as token ids, encoded once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from wordreel.backbones import clip_vocabulary
from wordreel.backbones.config import TextSettings
from wordreel.backbones.layout import TOKENIZER
from wordreel.backbones.tokenizer import TextTokenizer
from wordreel.errors import TrainingError
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.clip.video_text import CaptionBatch
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.video.recipe import VideoRecipe
from wordreel.models.model_store import find_checkpoint
from wordreel.runtime.store import WeightStore
from wordreel.types import Int64

BLOCK = 4096


def tokenizer_content(recipe: VideoRecipe, file: Path | None = None) -> str:
    """Return the tokenizer in a file, or of what training starts from; else CLIP's own."""
    folders = [Path(recipe.start.backbone).expanduser()] if recipe.start.backbone else []
    if recipe.start.model:
        folders.insert(0, find_checkpoint(Path(recipe.start.model).expanduser()))
    stored = [folder / TOKENIZER for folder in folders]
    found = file or next((path for path in stored if path.is_file()), None)
    return (found or WeightStore().file(clip_vocabulary.NAME)).read_text(encoding="utf-8")


@dataclass(frozen=True)
class CaptionIds:
    """`ids [captions, words]`, padded with 0, and how many of each are tokens."""

    ids: Int64
    lengths: Int64

    @staticmethod
    def of(pairs: Pairs, model: VideoTextConfig, tokenizer: str) -> CaptionIds:
        """Encode the captions of pairs, with the tokenizer of that content."""
        opened = TextTokenizer(tokenizer, TextSettings(model.max_words))
        _check_vocabulary(opened, model)
        texts, ids, lengths = pairs.texts, [], []
        for start in range(0, len(texts), BLOCK):
            some, mask = opened.encode(texts[start : start + BLOCK])
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


def _check_vocabulary(tokenizer: TextTokenizer, model: VideoTextConfig) -> None:
    """Raise unless the text tower has an embedding for every token."""
    held = model.backbone.text.vocabulary
    if tokenizer.vocabulary > held:
        raise TrainingError(f"the tokenizer has {tokenizer.vocabulary} tokens, the text tower only {held}")
