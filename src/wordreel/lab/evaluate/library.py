"""How well a library answers: captions of its videos as queries, through the very path a search takes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wordreel.banks.caption_queries import caption_queries
from wordreel.lab.evaluate.matrices import new_matrix
from wordreel.lab.evaluate.runs import Fold
from wordreel.progress import Progress, ProgressCallback
from wordreel.retrieval.caption_ranks import Captions
from wordreel.search.searcher import Searcher
from wordreel.types import Array

BATCH = 512  # queries scored at once


@dataclass(frozen=True)
class ScoredCaptions:
    """Similarities of captions to a library's videos. Captions of one video are neighbours."""

    similarities: Array  # [captions, videos]
    captions: Captions
    texts: tuple[str, ...]
    videos: tuple[str, ...]  # as the captions name them
    contents: tuple[str, ...]  # hash of each video's bytes
    missing: int  # captioned videos that the library does not have
    experts: dict[str, tuple[bool, ...]]  # which videos each expert has features of

    def part(self, fold: Fold) -> ScoredCaptions:
        """Return one fold as a test set of its own."""
        return replace(
            self,
            similarities=self.similarities[fold.rows, fold.columns],
            captions=fold.captions,
            texts=self.texts[fold.rows],
            videos=self.videos[fold.columns],
            contents=self.contents[fold.columns],
            experts={name: present[fold.columns] for name, present in self.experts.items()},
        )

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
) -> ScoredCaptions:
    """Score every caption against every captioned video (`caption_queries`); `save` writes them as `.npy`."""
    queries = caption_queries(searcher, captions)
    with new_matrix(save, (len(queries.texts), len(queries.contents)), np.dtype(np.float32)) as out:
        scores = similarities(searcher, queries.texts, queries.contents, out, on_progress)
    covered = [searcher.snapshot.coverage(searcher.model.experts, [content]) for content in queries.contents]
    return ScoredCaptions(
        similarities=scores,
        captions=Captions(len(queries.contents), queries.right, np.ones(len(queries.texts), bool)),
        texts=queries.texts,
        videos=queries.names,
        contents=queries.contents,
        missing=queries.missing,
        experts={expert: tuple(video[expert] > 0 for video in covered) for expert in searcher.model.experts},
    )


def similarities(
    searcher: Searcher,
    texts: Sequence[str],
    contents: Sequence[str],
    out: Array | None = None,
    on_progress: ProgressCallback | None = None,
) -> Array:
    """Compute the similarities `[texts, contents]` by which `search` ranks these videos.

    The result is filled into `out` where there is one.
    """
    column = {content: number for number, content in enumerate(searcher.snapshot.contents())}
    chosen = np.array([column[content] for content in contents])
    if out is None:
        out = np.empty((len(texts), len(contents)), np.float32)
    words = [text.strip() for text in texts]
    for start in range(0, len(words), BATCH):
        block = words[start : start + BATCH]
        encoded = searcher.with_words(block, searcher.model.encode(block))
        out[start : start + len(block)] = searcher.scores(encoded)[:, chosen]
        if on_progress:
            on_progress(Progress("scoring texts", start + len(block), len(texts)))
    return out
