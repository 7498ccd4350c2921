"""Transcripts as captions: each step draws another segment of consecutive words, with its time.

MMT's pre-training on narrated videos (Gabeur et al., 2020) draws 100 words of a transcript and keeps the 100
seconds of the video around them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wordreel.lab.models.batch import TokenBatch
from wordreel.lab.models.text.tokenizers import STOP, CaptionTokenizer, without_stop_words
from wordreel.lab.training.data.pairs import Pairs
from wordreel.types import Float32


@dataclass(frozen=True)
class Transcripts:
    """The words of every caption, `times [words, 2]` in seconds (NaN: unknown), and what encodes them."""

    words: tuple[list[str], ...]
    times: tuple[Float32, ...]
    tokenizer: CaptionTokenizer


def split_transcripts(pairs: Pairs, tokenizer: CaptionTokenizer, until: float = 0.0) -> Transcripts:
    """Return the words of every caption, without those that start after `until` seconds (0: no limit)."""
    words, times = [], []
    for caption in (caption for captions in pairs.captions for caption in captions):
        spoken = caption.text.split()
        clock = caption.word_times(len(spoken))
        kept = [
            not (until and start > until) and (tokenizer.keep_stop_words or without_stop_words(word) != STOP)
            for word, start in zip(spoken, clock[:, 0].tolist(), strict=True)
        ]
        words.append([word for word, keep in zip(spoken, kept, strict=True) if keep])
        times.append(clock[np.array(kept, bool)])
    return Transcripts(tuple(words), tuple(times), tokenizer)


class TranscriptStore:
    """`sample(captions)` draws a segment of `length` words from each; `fixed` is the width of all batches."""

    storage_device = torch.device("cpu")

    def __init__(self, spoken: Transcripts, device: torch.device, length: int, fixed: int = 0) -> None:
        self.spoken, self.device, self.length, self.fixed = spoken, device, length, fixed

    def sample(self, captions: Tensor) -> tuple[TokenBatch, Tensor]:
        """Return a random segment of each caption `[b]`, and its middle in seconds, NaN where unknown."""
        counts = torch.tensor([len(self.spoken.words[number]) for number in captions.tolist()])
        choices = (counts - self.length + 1).clamp(min=1)
        first = (torch.rand(len(captions)) * choices).long()
        return self.segments(captions, torch.minimum(first, choices - 1))

    def segments(self, captions: Tensor, first: Tensor) -> tuple[TokenBatch, Tensor]:
        """Return the segments that start at the words `first [b]`."""
        texts, middles = [], []
        for number, start in zip(captions.tolist(), first.tolist(), strict=True):
            end = start + self.length
            texts.append(" ".join(self.spoken.words[number][start:end]))
            times = self.spoken.times[number][start:end]
            middles.append((times[0, 0] + times[-1, 1]) / 2 if len(times) else np.nan)
        encoded = (torch.from_numpy(part) for part in self.spoken.tokenizer.encode(texts))
        tokens, mask = (torch.nn.functional.pad(x, (0, max(0, self.fixed - x.shape[1]))) for x in encoded)
        batch = TokenBatch(tokens.to(self.device), mask.to(self.device))
        return batch, torch.tensor(np.array(middles, np.float32), device=self.device)
