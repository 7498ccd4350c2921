"""How well a library answers: captions of its videos as queries, through the very path a search takes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.errors import QueryError
from wordreel.evaluate.querybank import new_matrix
from wordreel.evaluate.retrieval import Array, Captions
from wordreel.search.engine import Engine
from wordreel.types import Float32

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
    engine: Engine,
    captions: Mapping[str, Sequence[str]],
    *,
    save: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scored:
    """Score every caption against every captioned video. Other videos of the library do not compete.

    An id is a file's name, with or without its ending. Files of the same bytes are one video, which all their
    captions ask for. `save` keeps the similarities as `.npy`.
    """
    named: dict[str, str] = {}
    for file in engine.store.files():
        named.setdefault(Path(file.path).name, file.content)
        named.setdefault(Path(file.path).stem, file.content)
    findable = set(engine.contents())
    here = {name: texts for name, texts in captions.items() if named.get(name) in findable}
    groups: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for name, texts in here.items():
        groups.setdefault(named[name], []).extend(texts)
        names.setdefault(named[name], name)
    texts = [text for group in groups.values() for text in group]
    if not texts:
        raise QueryError(
            "none of the captioned ids is a file name in this library; `wordreel list` shows them"
        )
    contents = list(groups)
    with new_matrix(save, (len(texts), len(contents)), np.dtype(np.float32)) as kept:
        found = similarities(engine, texts, contents, kept, progress)
    speaks = [engine.coverage([content]) for content in contents]
    return Scored(
        similarities=found,
        captions=Captions(
            len(contents),
            np.repeat(np.arange(len(contents)), [len(group) for group in groups.values()]),
            np.ones(len(texts), bool),
        ),
        texts=tuple(texts),
        videos=tuple(names.values()),
        contents=tuple(contents),
        missing=len(captions) - len(here),
        experts={expert: tuple(video[expert] > 0 for video in speaks) for expert in engine.model.experts},
    )


def similarities(
    engine: Engine,
    texts: Sequence[str],
    contents: Sequence[str],
    out: Array | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """`[texts, contents]`: what `search` ranks these videos by; filled into `out` where there is one."""
    column = {content: number for number, content in enumerate(engine.contents())}
    chosen = np.array([column[content] for content in contents])
    if out is None:
        out = np.empty((len(texts), len(contents)), np.float32)
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        scores: Float32 = engine.scores(batch)
        out[start : start + len(batch)] = scores[:, chosen]
        if progress:
            progress(start + len(batch), len(texts))
    return out
