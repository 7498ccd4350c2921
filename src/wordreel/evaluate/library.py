"""How well a library answers: captions of its videos as queries, through the very path a search takes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.evaluate.answers import answers
from wordreel.evaluate.querybank import new_matrix
from wordreel.evaluate.retrieval import Array, Captions
from wordreel.progress import Progress, ProgressCallback
from wordreel.search.searcher import Searcher

BATCH = 512  # queries scored at once


@dataclass(frozen=True)
class Scored:
    """What a library thinks of the captions of its videos. Captions of one video are neighbours."""

    similarities: Array  # [captions, videos]
    captions: Captions
    texts: tuple[str, ...]
    videos: tuple[str, ...]  # as the captions name them
    contents: tuple[str, ...]  # hash of each video's bytes
    missing: int  # captioned videos that the library does not have
    experts: dict[str, tuple[bool, ...]]  # which videos each expert speaks for

    @property
    def files_sha256(self) -> str:
        """The same files in the same order have the same."""
        return hashlib.sha256("\n".join(self.contents).encode()).hexdigest()


def score(
    searcher: Searcher,
    captions: Mapping[str, Sequence[str]],
    *,
    save: Path | None = None,
    on_progress: ProgressCallback | None = None,
) -> Scored:
    """Score every caption against every captioned video (see `answers`); `save` keeps them as `.npy`."""
    asked = answers(searcher, captions)
    with new_matrix(save, (len(asked.texts), len(asked.contents)), np.dtype(np.float32)) as kept:
        found = similarities(searcher, asked.texts, asked.contents, kept, on_progress)
    speaks = [searcher.snapshot.coverage(searcher.model.experts, [content]) for content in asked.contents]
    return Scored(
        similarities=found,
        captions=Captions(len(asked.contents), asked.right, np.ones(len(asked.texts), bool)),
        texts=asked.texts,
        videos=asked.names,
        contents=asked.contents,
        missing=asked.missing,
        experts={expert: tuple(video[expert] > 0 for video in speaks) for expert in searcher.model.experts},
    )


def similarities(
    searcher: Searcher,
    texts: Sequence[str],
    contents: Sequence[str],
    out: Array | None = None,
    on_progress: ProgressCallback | None = None,
) -> Array:
    """`[texts, contents]`: what `search` ranks these videos by; filled into `out` where there is one."""
    column = {content: number for number, content in enumerate(searcher.snapshot.contents())}
    chosen = np.array([column[content] for content in contents])
    if out is None:
        out = np.empty((len(texts), len(contents)), np.float32)
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        out[start : start + len(batch)] = searcher.scores(batch)[:, chosen]
        if on_progress:
            on_progress(Progress("scoring texts", start + len(batch), len(texts)))
    return out
