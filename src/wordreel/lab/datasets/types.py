"""What every reader of captions or features gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wordreel.types import Float32


@dataclass(frozen=True)
class Caption:
    """One sentence (or paragraph) about an item; with a span where it is about a part of the video.

    A transcript has the times of its words, `words [n, 2]` in seconds.
    """

    text: str
    start: float | None = None
    end: float | None = None
    words: Float32 | None = field(default=None, compare=False, repr=False)

    def word_times(self, count: int) -> Float32:
        """Return `[count, 2]` seconds: the words' own, else the span shared out evenly, else NaN."""
        if self.words is not None and len(self.words) == count:
            return self.words
        if self.start is None or self.end is None:
            return np.full((count, 2), np.nan, np.float32)
        edges = np.linspace(self.start, self.end, count + 1, dtype=np.float32)
        return np.stack([edges[:-1], edges[1:]], axis=1)


@dataclass(frozen=True)
class Item:
    """One gallery item: a video, a clip or a picture under the id its dataset gives it."""

    id: str
    captions: tuple[Caption, ...] = ()
    path: str | None = None  # of the media file where the annotations name it
    label: int | None = None  # class, for sets that are searched by image (CUB, SOP)


@dataclass(frozen=True)
class Missing:
    """A file that was not there: what it is, where it was looked for, and what works without it."""

    what: str
    looked: Path
    without: str


@dataclass(frozen=True)
class Split:
    """The items of one split of one dataset, in the dataset's order."""

    dataset: str
    name: str
    items: tuple[Item, ...]
    missing: tuple[Missing, ...] = ()

    @property
    def captions(self) -> dict[str, list[str]]:
        """Item id → its sentences."""
        return {item.id: [caption.text for caption in item.captions] for item in self.items}
