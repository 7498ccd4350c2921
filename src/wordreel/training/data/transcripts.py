"""Transcripts as captions: in every step another stretch of consecutive words, with its time.

MMT's pre-training on narrated videos (Gabeur et al., 2020) draws 100 words of a transcript and keeps the 100
seconds of the video around them. Every different word is cut into pieces once. A batch is then put together
on the device from numbers of words: the place p of a row belongs to the k-th word where k words end at or
before p, so a captured step draws anew whenever it is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.models.batch import TokenBatch
from wordreel.models.text.preprocess import STOP, without_stop_words
from wordreel.models.text.tokenizers import CaptionTokenizer
from wordreel.training.data.feature_store import device_for
from wordreel.training.data.packed import Packed, pack
from wordreel.training.data.pairs import Pairs
from wordreel.types import Bool

NOTHING, FULL_STOP = 0, 1  # numbers of words that are in every table


@dataclass(frozen=True)
class Transcripts:
    """`words` are numbers into `table`, whose second half has each word as it begins a sentence.

    `table[number]` are a word's tokens; word 0 has none and word 1 is a full stop.
    """

    words: Packed  # [words]
    times: NDArray[np.float32]  # [words, 2] seconds, NaN where unknown
    table: Packed  # [2 · different words]
    ending: Bool  # [2 · different words] whether no full stop is to follow
    marks: tuple[int, int]  # the tokens before and after all others
    sentences: bool  # whether a capital and a full stop are put


def transcripts(pairs: Pairs, source: CaptionTokenizer, until: float = 0.0) -> Transcripts:
    """Every caption's words. Those that begin after `until` seconds are left out; 0: none are."""
    if source.pieces is None:
        raise TrainingError(
            "data.stretch draws words of captions and needs a text network over word pieces: "
            'model.text.words="bert", and "minilm" or "wordpiece:FOLDER" as model.text.source'
        )
    known: dict[str, int] = {"": NOTHING, STOP: FULL_STOP}
    rows, times = [], []
    for captions in pairs.captions:
        for caption in captions:
            said = caption.text.split()
            when = caption.word_times(len(said))
            if not source.keep_stop_words:
                said = [without_stop_words(word) for word in said]
            kept = [
                number
                for number, word in enumerate(said)
                if not (until and when[number, 0] > until) and (source.keep_stop_words or word != STOP)
            ]
            rows.append(np.array([known.setdefault(said[n], len(known)) for n in kept], np.int64))
            times.append(when[kept])
    words = list(known)
    if source.sentences:
        spelled = [word.lower() for word in words] + [word.capitalize() for word in words]
    else:
        spelled = words + words
    tokens, marks = source.pieces(spelled)
    return Transcripts(
        pack(rows, like=np.zeros(0, np.int64)),
        np.concatenate(times).reshape(-1, 2).astype(np.float32),
        pack(tokens, like=np.zeros(0, np.int64)),
        np.array([word.endswith((".", "?", "!")) for word in spelled]),
        marks,
        source.sentences,
    )


class Stretches:
    """`shown(captions)` draws `length` words of each and says when they are spoken."""

    def __init__(self, spoken: Transcripts, device: torch.device, length: int, most: int) -> None:
        """`most` tokens of a stretch are kept, the two marks included."""
        self.device, self.length, self.most = device, length, most
        size = 4 * spoken.words.values.size + spoken.times.nbytes
        self.place = device_for(size, device)
        self.words = torch.from_numpy(np.append(spoken.words.values, NOTHING)).to(self.place, torch.int32)
        nothing = np.full((1, 2), np.nan, np.float32)
        self.times = torch.from_numpy(np.concatenate([spoken.times, nothing])).to(self.place)
        self.starts = torch.from_numpy(spoken.words.starts).to(self.place)
        self.counts = torch.from_numpy(spoken.words.counts).to(self.place)
        self.tokens = torch.from_numpy(np.append(spoken.table.values, 0)).to(self.place)
        self.token_starts = torch.from_numpy(spoken.table.starts).to(self.place)
        self.token_counts = torch.from_numpy(spoken.table.counts).to(self.place)
        self.ending = torch.from_numpy(spoken.ending).to(self.place)
        self.marks, self.sentences = spoken.marks, spoken.sentences

    def __len__(self) -> int:
        return len(self.counts)

    def shown(self, captions: Tensor) -> tuple[TokenBatch, Tensor]:
        """A stretch of each caption `[b]`, and its middle in seconds `[b]`, NaN where unknown."""
        there = captions.to(self.place)
        room = (self.counts[there] - self.length + 1).clamp(min=1)
        first = (torch.rand(len(there), device=self.place) * room).long()
        return self.cut(there, torch.minimum(first, room - 1))

    def cut(self, captions: Tensor, first: Tensor) -> tuple[TokenBatch, Tensor]:
        """The stretches that begin at the words `first [b]`."""
        begin = self.starts[captions] + first
        size = (self.counts[captions] - first).clamp(0, self.length)
        last = (begin + size - 1).clamp(min=0)
        middles = (self.times[begin, 0] + self.times[last, 1]) / 2
        middles = torch.where(size > 0, middles, torch.nan)
        tokens, mask = self._tokens(self._numbers(begin, size))
        return TokenBatch(tokens.to(self.device), mask.to(self.device)), middles.to(self.device)

    def _numbers(self, begin: Tensor, size: Tensor) -> Tensor:
        """`[b, length + 1]`: the numbers of the words, and of the full stop where there is one."""
        places = torch.arange(self.length, device=self.place)
        there = places < size[:, None]
        numbers = torch.where(there, self.words[torch.where(there, begin[:, None] + places, -1)], NOTHING)
        numbers = numbers.long()
        end = torch.full_like(begin, NOTHING)
        if self.sentences:
            last = numbers.gather(1, (size - 1).clamp(min=0)[:, None])[:, 0]
            end = torch.where(self.ending[last], NOTHING, FULL_STOP)
            capital = len(self.token_counts) // 2
            numbers = torch.cat([numbers[:, :1] + capital, numbers[:, 1:]], dim=1)
        return torch.cat([numbers, end[:, None]], dim=1)

    def _tokens(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """`[b, most]` tokens of these words between the marks, and which are real."""
        counts = self.token_counts[numbers]
        ends = counts.cumsum(dim=1)
        room = torch.arange(self.most - 2, device=self.place)
        word = (room[None, :, None] >= ends[:, None, :]).sum(dim=2).clamp(max=numbers.shape[1] - 1)
        real = room < ends[:, -1:]
        inside = room - (ends - counts).gather(1, word)
        rows = self.token_starts[numbers.gather(1, word)] + inside
        middle = torch.where(real, self.tokens[torch.where(real, rows, -1)], 0)
        before = torch.full_like(middle[:, :1], self.marks[0])
        whole = torch.cat([before, middle, torch.zeros_like(before)], dim=1)
        after = real.sum(dim=1, keepdim=True) + 1
        whole = whole.scatter(1, after, self.marks[1])
        return whole, torch.arange(self.most, device=self.place) <= after
