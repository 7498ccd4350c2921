"""Videos with their captions, in memory: what every source of training data becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import TrainingError
from wordreel.lab.datasets.types import Caption
from wordreel.lab.training.data.packed import Packed, concatenate
from wordreel.types import Bool, Int64

T = TypeVar("T")


@dataclass(frozen=True)
class Pairs:
    """`rows[expert]` has one (perhaps empty) item per video, `captions` at least one caption per video.

    Videos have features (`rows`) or files (`paths`), for models that read frames. `words` are word features
    `[words, dim]` of each caption that were computed elsewhere; `source` numbers the source of each video and
    `shares` says how often an epoch shows each video of a source.
    """

    name: str
    ids: tuple[str, ...]
    rows: Mapping[str, Packed]
    captions: tuple[tuple[Caption, ...], ...]
    words: tuple[tuple[NDArray[Any], ...], ...] | None = None
    source: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    shares: tuple[float, ...] = (1.0,)
    missing: int = 0  # captioned items that have neither features nor a file
    paths: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if not self.ids:
            raise TrainingError(f"{self.name}: there is no video that has both features and captions")
        if not all(share > 0 for share in self.shares):
            raise TrainingError(f"{self.name}: a share must be above 0, not {min(self.shares)}")
        if any(not captions for captions in self.captions):
            raise TrainingError(f"{self.name}: every video of training needs a caption")
        if len(self.source) != len(self.ids):
            object.__setattr__(self, "source", np.zeros(len(self.ids), np.int64))
        wrong = [name for name, packed in self.rows.items() if len(packed) != len(self.ids)]
        if wrong or len(self.captions) != len(self.ids):
            raise TrainingError(f"{self.name}: {wrong or 'captions'} are not of {len(self.ids)} videos")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def counts(self) -> Int64:
        """Captions of each video."""
        return np.array([len(captions) for captions in self.captions], np.int64)

    @property
    def texts(self) -> list[str]:
        """Every caption, those of one video together, in the order of the videos."""
        return [caption.text for captions in self.captions for caption in captions]

    @property
    def spans(self) -> NDArray[np.float32]:
        """`[captions, 2]` seconds; NaN where a caption is about all of its video."""
        nan = float("nan")
        spans = [
            (nan if caption.start is None else caption.start, nan if caption.end is None else caption.end)
            for captions in self.captions
            for caption in captions
        ]
        return np.array(spans, np.float32).reshape(-1, 2)

    @property
    def fingerprint(self) -> str:
        """Changes with the videos, their features' shapes, their files' sizes and their captions."""
        digest = hashlib.sha256()
        for number, name in enumerate(self.ids):
            texts = "\x1f".join(caption.text for caption in self.captions[number])
            digest.update(f"{name}\x1e{self.source[number]}\x1e{texts}\x1d".encode("utf-8", "replace"))
        for expert in sorted(self.rows):
            digest.update(f"{expert}\x1e".encode())
            digest.update(np.ascontiguousarray(self.rows[expert].counts).data)
            digest.update(np.ascontiguousarray(self.rows[expert].values[:: max(1, len(self) // 64)]).data)
        for path in self.paths:
            digest.update(f"{path.name}\x1e{path.stat().st_size}\x1d".encode())
        return digest.hexdigest()[:16]

    def limited(self, captions: int) -> Pairs:
        """Return at most so many captions of each video, from the first; 0 keeps all."""
        if not captions:
            return self
        within = np.concatenate([np.arange(count) for count in self.counts])
        return self.select_captions(within < captions)

    def select_captions(self, mask: Bool) -> Pairs:
        """Return only some captions, `mask [captions]`. A video must not lose all of its."""
        parts = np.split(mask, np.cumsum(self.counts)[:-1])

        def selected(groups: tuple[tuple[T, ...], ...]) -> tuple[tuple[T, ...], ...]:
            return tuple(tuple(compress(group, part)) for group, part in zip(groups, parts, strict=True))

        words = None if self.words is None else selected(self.words)
        return replace(self, captions=selected(self.captions), words=words)

    def take(self, ids: Sequence[str]) -> Pairs:
        """Return only these videos, in this order."""
        if tuple(ids) == self.ids:
            return self
        index = {name: number for number, name in enumerate(self.ids)}
        if absent := [name for name in ids if name not in index]:
            raise TrainingError(f"{self.name} has no features of {len(absent)} videos, such as {absent[0]}")
        some = [index[name] for name in ids]
        return replace(
            self,
            ids=tuple(ids),
            rows={expert: packed.take(some) for expert, packed in self.rows.items()},
            captions=tuple(self.captions[n] for n in some),
            words=None if self.words is None else tuple(self.words[n] for n in some),
            source=self.source[some],
            paths=tuple(self.paths[n] for n in some if self.paths),
        )


def join(parts: Sequence[Pairs]) -> Pairs:
    """Return several sources as one: an expert that a source does not have is missing from all its videos."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        raise TrainingError("there is nothing to train on")
    if len({part.words is None for part in parts}) > 1:
        raise TrainingError("sources with ready word features cannot be joined with sources that have none")
    rows = {}
    for expert in sorted({expert for part in parts for expert in part.rows}):
        here = [part.rows.get(expert) for part in parts]
        dims = {p.values.shape[1] for p in here if p is not None and len(p.values)}
        if len(dims) > 1:
            raise TrainingError(f"{expert} has rows of {sorted(dims)} numbers in different sources")
        empty = np.zeros((0, dims.pop() if dims else 1), np.float32)
        rows[expert] = concatenate(
            [
                p if p is not None else Packed(empty, np.zeros(len(part), np.int64), np.zeros(0, np.float32))
                for part, p in zip(parts, here, strict=True)
            ]
        )
    firsts = np.cumsum([0, *(len(part.shares) for part in parts)])
    return Pairs(
        " + ".join(part.name for part in parts),
        tuple(name for part in parts for name in part.ids),
        rows,
        tuple(captions for part in parts for captions in part.captions),
        None if parts[0].words is None else tuple(w for part in parts for w in part.words or ()),
        np.concatenate([part.source + first for part, first in zip(parts, firsts, strict=False)]),
        tuple(share for part in parts for share in part.shares),
        sum(part.missing for part in parts),
        tuple(path for part in parts for path in part.paths),
    )
