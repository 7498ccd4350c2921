"""Transcripts as captions: each step draws another segment of consecutive words, with its time.

MMT's pre-training on narrated videos (Gabeur et al., 2020) draws 100 words of a transcript and keeps the 100
seconds of the video around them. Each distinct word is tokenized once. A batch is then assembled on the
device from word indices: position p of a row belongs to word k where k words end at or before p. A captured
CUDA graph therefore draws another segment whenever it is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.models.batch import TokenBatch
from wordreel.lab.models.text.tokenizers import STOP, CaptionTokenizer, without_stop_words
from wordreel.lab.training.data.packed import Packed, device_for, pack
from wordreel.lab.training.data.pairs import Pairs
from wordreel.types import Bool

NO_WORD, FULL_STOP = 0, 1  # indices of words that are in every table


@dataclass(frozen=True)
class Transcripts:
    """`words` are indices into `table`, whose second half holds each word as it starts a sentence.

    `table[index]` are a word's tokens; word 0 has none and word 1 is a full stop.
    """

    words: Packed  # [words]
    times: NDArray[np.float32]  # [words, 2] seconds, NaN where unknown
    table: Packed  # [2 · distinct words]
    ends_sentence: Bool  # [2 · distinct words] whether the word ends with . ? or !
    special: tuple[int, int]  # the first and the last token of a text, such as [CLS] and [SEP]
    sentences: bool  # whether to add a capital and a full stop


def tokenize_transcripts(pairs: Pairs, source: CaptionTokenizer, until: float = 0.0) -> Transcripts:
    """Return the words of every caption, without those that start after `until` seconds (0: no limit)."""
    if source.pieces is None:
        raise TrainingError(
            "data.segment_words needs a text network over word pieces: "
            'model.text.words="bert", and "minilm" or "wordpiece:FOLDER" as model.text.source'
        )
    index: dict[str, int] = {"": NO_WORD, STOP: FULL_STOP}
    rows, times = [], []
    for captions in pairs.captions:
        for caption in captions:
            spoken = caption.text.split()
            word_times = caption.word_times(len(spoken))
            if not source.keep_stop_words:
                spoken = [without_stop_words(word) for word in spoken]
            selected = [
                number
                for number, word in enumerate(spoken)
                if not (until and word_times[number, 0] > until) and (source.keep_stop_words or word != STOP)
            ]
            rows.append(np.array([index.setdefault(spoken[n], len(index)) for n in selected], np.int64))
            times.append(word_times[selected])
    words = list(index)
    if source.sentences:
        spelled = [word.lower() for word in words] + [word.capitalize() for word in words]
    else:
        spelled = words + words
    tokens, special = source.pieces(spelled)
    return Transcripts(
        pack(rows, like=np.zeros(0, np.int64)),
        np.concatenate(times).reshape(-1, 2).astype(np.float32),
        pack(tokens, like=np.zeros(0, np.int64)),
        np.array([word.endswith((".", "?", "!")) for word in spelled]),
        special,
        source.sentences,
    )


class TranscriptStore:
    """Transcripts on the device; `sample(captions)` draws a segment of `length` words from each."""

    def __init__(self, spoken: Transcripts, device: torch.device, length: int, max_tokens: int) -> None:
        """Hold transcripts; a segment is cut to `max_tokens` tokens, the two special ones included."""
        self.device, self.length, self.max_tokens = device, length, max_tokens
        size = 4 * spoken.words.values.size + spoken.times.nbytes
        self.storage_device = device_for(size, device)
        self.words = torch.from_numpy(np.append(spoken.words.values, NO_WORD)).to(
            self.storage_device, torch.int32
        )
        unknown = np.full((1, 2), np.nan, np.float32)
        self.times = torch.from_numpy(np.concatenate([spoken.times, unknown])).to(self.storage_device)
        self.starts = torch.from_numpy(spoken.words.starts).to(self.storage_device)
        self.counts = torch.from_numpy(spoken.words.counts).to(self.storage_device)
        self.tokens = torch.from_numpy(np.append(spoken.table.values, 0)).to(self.storage_device)
        self.token_starts = torch.from_numpy(spoken.table.starts).to(self.storage_device)
        self.token_counts = torch.from_numpy(spoken.table.counts).to(self.storage_device)
        self.ends_sentence = torch.from_numpy(spoken.ends_sentence).to(self.storage_device)
        self.special, self.sentences = spoken.special, spoken.sentences

    def __len__(self) -> int:
        return len(self.counts)

    def sample(self, captions: Tensor) -> tuple[TokenBatch, Tensor]:
        """Return a random segment of each caption `[b]`, and its middle in seconds, NaN where unknown."""
        captions = captions.to(self.storage_device)
        choices = (self.counts[captions] - self.length + 1).clamp(min=1)
        first = (torch.rand(len(captions), device=self.storage_device) * choices).long()
        return self.segments(captions, torch.minimum(first, choices - 1))

    def segments(self, captions: Tensor, first: Tensor) -> tuple[TokenBatch, Tensor]:
        """Return the segments that start at the words `first [b]`."""
        start = self.starts[captions] + first
        size = (self.counts[captions] - first).clamp(0, self.length)
        last = (start + size - 1).clamp(min=0)
        middles = (self.times[start, 0] + self.times[last, 1]) / 2
        middles = torch.where(size > 0, middles, torch.nan)
        tokens, mask = self._tokens(self._word_indices(start, size))
        return TokenBatch(tokens.to(self.device), mask.to(self.device)), middles.to(self.device)

    def _word_indices(self, start: Tensor, size: Tensor) -> Tensor:
        """`[b, length + 1]`: the words' indices, and that of the full stop where there is one."""
        positions = torch.arange(self.length, device=self.storage_device)
        inside = positions < size[:, None]
        numbers = torch.where(
            inside, self.words[torch.where(inside, start[:, None] + positions, -1)], NO_WORD
        )
        numbers = numbers.long()
        end = torch.full_like(start, NO_WORD)
        if self.sentences:
            last = numbers.gather(1, (size - 1).clamp(min=0)[:, None])[:, 0]
            end = torch.where(self.ends_sentence[last], NO_WORD, FULL_STOP)
            capital = len(self.token_counts) // 2
            numbers = torch.cat([numbers[:, :1] + capital, numbers[:, 1:]], dim=1)
        return torch.cat([numbers, end[:, None]], dim=1)

    def _tokens(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """`[b, max_tokens]` tokens of these words between the special ones, and which are not padding."""
        counts = self.token_counts[numbers]
        ends = counts.cumsum(dim=1)
        positions = torch.arange(self.max_tokens - 2, device=self.storage_device)
        word = (positions[None, :, None] >= ends[:, None, :]).sum(dim=2).clamp(max=numbers.shape[1] - 1)
        real = positions < ends[:, -1:]
        offset = positions - (ends - counts).gather(1, word)
        rows = self.token_starts[numbers.gather(1, word)] + offset
        middle = torch.where(real, self.tokens[torch.where(real, rows, -1)], 0)
        before = torch.full_like(middle[:, :1], self.special[0])
        whole = torch.cat([before, middle, torch.zeros_like(before)], dim=1)
        after = real.sum(dim=1, keepdim=True) + 1
        whole = whole.scatter(1, after, self.special[1])
        return whole, torch.arange(self.max_tokens, device=self.storage_device) <= after
