"""The data of tuning: outputs of the frozen part of the model for all videos and captions, computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordreel.banks import everyday
from wordreel.embed.embed_library import tracks_of
from wordreel.lab.training.tune.heads import TextInputs
from wordreel.models.reel.model import Reel
from wordreel.models.reel.own_words import ids_of, shares, words_of
from wordreel.models.reel.runtime import first_tokens, text_parts
from wordreel.models.similarity import divide, flatten_queries
from wordreel.progress import Progress, ProgressCallback
from wordreel.search.lexical import lexical_matches
from wordreel.search.searcher import Searcher
from wordreel.types import Bool, Float32, Int64

OTHERS = 1_000  # videos without captions that compete with those that have some
COMMON = 0.3  # words in the captions of more than this share of the videos say nothing of them
MOST_WORDS = 4_000
AT_ONCE = 512  # texts


@dataclass(frozen=True, eq=False)
class TuneData:
    """`captioned` videos come first, then others that only compete. Items (clips and whole videos) stand
    video by video. `bonus` is (caption, item, value) of spoken words and on-screen text."""

    tower: Mapping[str, Float32]
    weights: Float32  # [experts], row 0 is the learned one
    read: Float32  # [items, dim]
    others: Float32  # [items, experts − 1, dim]
    available: Bool  # [items, experts]
    video: Int64  # [items]
    whole: Int64  # [videos], the item that stands for the video in training
    captioned: int
    texts: TextInputs
    owner: Int64  # [captions]
    words: tuple[str, ...]
    bonus: tuple[Int64, Int64, Float32]
    everyday: TextInputs

    @property
    def videos(self) -> int:
        return len(self.whole)

    @cached_property
    def edges(self) -> Int64:
        """Where each video's items begin."""
        return np.searchsorted(self.video, np.arange(self.videos)).astype(np.int64)

    def captions_of(self, videos: Int64) -> Int64:
        """The captions of some videos."""
        chosen = np.zeros(self.videos, bool)
        chosen[videos] = True
        return np.flatnonzero(chosen[self.owner])

    def rest(self, others: Float32, items: Int64 | slice = slice(None)) -> tuple[Float32, Float32]:
        """What the rows that are not learned add to the similarity `[texts, items]`, and what the learned
        one is multiplied by `[items]`."""
        weights = np.tile(self.weights[1:], (len(others), 1))
        vectors = self.others[items] * self.available[items, 1:, None]
        top = flatten_queries(others, weights) @ vectors.reshape(len(vectors), -1).T
        total = self.available[items].astype(np.float32) @ self.weights
        share = divide(self.weights[0] * self.available[items, 0].astype(np.float32), total)
        return divide(top, np.broadcast_to(total, top.shape)), share


def gather(
    searcher: Searcher,
    model: Reel,
    captions: Mapping[str, Sequence[str]],
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> TuneData:
    """Read the tracks of the captioned videos (and of some others) and encode all captions."""
    with_words = [content for content in sorted(captions) if content in searcher.snapshot]
    rest = sorted(set(searcher.snapshot.contents()) - set(with_words))
    drawn = np.random.default_rng(seed).permutation(len(rest))[:OTHERS]
    contents = [*with_words, *(rest[number] for number in np.sort(drawn))]
    rows: list[int] = []
    video: list[int] = []
    whole: list[int] = []
    read: list[Float32] = []
    tokens: list[dict[str, Float32]] = []
    for number, content in enumerate(contents):
        own = searcher.snapshot.rows(content)
        tracks = tracks_of(searcher.store, model, content)
        tokens += model.tokens(tracks, [searcher.snapshot.items[row].clip for row in own])
        entire = [index for index, row in enumerate(own) if searcher.snapshot.items[row].whole]
        whole.append(len(rows) + (entire[0] if entire else 0))
        rows += own.tolist()
        video += [number] * len(own)
        if len(tokens) >= AT_ONCE or number + 1 == len(contents):
            read.append(first_tokens(model.checkpoint.tower, model.checkpoint.config, tokens))
            tokens = []
        if on_progress:
            on_progress(Progress("reading videos", number + 1, len(contents)))
    texts = [text for content in with_words for text in captions[content]]
    owner = np.repeat(np.arange(len(with_words)), [len(captions[content]) for content in with_words])
    words = own_words(texts, owner)
    vectors, available = (
        np.asarray(searcher.snapshot.gallery.vectors[rows]),
        np.asarray(searcher.snapshot.gallery.available[rows]),
    )
    return TuneData(
        tower=model.checkpoint.tower,
        weights=np.asarray(model.expert_weights, np.float32),
        read=np.concatenate(read),
        others=vectors[:, 1:],
        available=available,
        video=np.array(video, np.int64),
        whole=np.array(whole, np.int64),
        captioned=len(with_words),
        texts=_texts(model, texts, words, on_progress),
        owner=owner.astype(np.int64),
        words=words,
        bonus=_bonus(searcher, texts, rows),
        everyday=_texts(model, everyday.queries(), words),
    )


def own_words(texts: Sequence[str], owner: Int64) -> tuple[str, ...]:
    """Words that captions of at least two videos have, and not too many of them, most frequent first."""
    known: dict[str, set[int]] = {}
    for text, video in zip(texts, owner.tolist(), strict=True):
        for word in words_of(text):
            known.setdefault(word, set()).add(video)
    videos = len(np.unique(owner))
    fit = [word for word, of in known.items() if 2 <= len(of) <= max(COMMON * videos, 2)]
    return tuple(sorted(fit, key=lambda word: (-len(known[word]), word))[:MOST_WORDS])


def _texts(
    model: Reel, texts: Sequence[str], words: Sequence[str], on_progress: ProgressCallback | None = None
) -> TextInputs:
    positions = {word: position for position, word in enumerate(words)}
    sentences, others = [], []
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        sentences.append(model.sentences(some))
        others.append(model.others(some))
        if on_progress:
            on_progress(Progress("encoding captions", min(start + AT_ONCE, len(texts)), len(texts)))
    x, deep = text_parts(model.checkpoint.tower, np.concatenate(sentences))
    ids = ids_of(texts, positions)
    return TextInputs(x, deep, ids, shares(ids), np.concatenate(others))


def _bonus(searcher: Searcher, texts: Sequence[str], rows: Sequence[int]) -> tuple[Int64, Int64, Float32]:
    """What a search adds for spoken words and on-screen text: no model affects it, but it changes ranks."""
    every = np.array(rows, np.int64)
    bonus = [lexical_matches(searcher.snapshot, text).of(every) for text in texts]
    found = [np.flatnonzero(of_text) for of_text in bonus]
    values = [of_text[some] for of_text, some in zip(bonus, found, strict=True)]
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    numbers = np.repeat(np.arange(len(texts)), [len(some) for some in found])
    return numbers, np.concatenate(found), np.concatenate(values)
