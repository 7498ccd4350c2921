"""The few types every package agrees on. All are frozen; arrays carry their shape in the comment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError

Array = NDArray[Any]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Words:
    """Spoken or on-screen words and their time, in seconds from the start of the video."""

    text: str
    start: float
    end: float
    score: float = 1.0


@dataclass(frozen=True)
class Track:
    """One expert's features over one video.

    `values` is `[n, dim]` float32 and `times` is `[n, 2]` float64 seconds, `start <= end`, in order.
    Experts that recognise text (speech, on-screen text) return it in `words`.

    >>> Track(np.zeros((2, 3), np.float32), np.array([[0.0, 1.0], [1.0, 2.0]])).dim
    3
    """

    values: Float32
    times: Float64
    words: tuple[Words, ...] = ()

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.times.shape != (len(self.values), 2):
            raise ValueError(
                f"a track is values [n, dim] and times [n, 2], not {self.values.shape} and {self.times.shape}"
            )
        if len(self.values) == 0:
            raise ValueError("a track has at least one row; use Absent otherwise")

    @staticmethod
    def of_lines(lines: Sequence[Words]) -> Track:
        """Return the track of an expert that recognises text: a row for each line, with its score.

        >>> Track.of_lines([Words("hello", 1.0, 2.0, 0.5)]).values.tolist()
        [[0.5]]
        """
        scores = np.array([[line.score] for line in lines], np.float32)
        return Track(scores, np.array([(line.start, line.end) for line in lines], np.float64), tuple(lines))

    @property
    def dim(self) -> int:
        """Return the length of a row."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Absent:
    """An expert has no output for a video, and why: "no sound stream", "no face found"."""

    reason: str


@dataclass(frozen=True)
class Labels:
    """Class scores of an expert for the rows of its track.

    `scores` is `[n, classes]` (logits), `times` is `[n, 2]` seconds, `names` has one
    entry per class.
    """

    names: tuple[str, ...]
    scores: Float32
    times: Float64


@dataclass(frozen=True)
class Clip:
    """A gallery item: `[start, end)` seconds of one video, or all of it."""

    content: str  # the hash of the file's bytes
    start: float
    end: float
    whole: bool = False


@dataclass(frozen=True)
class QueryEmbedding:
    """`vectors [experts, dim]` and the non-negative mixture `weights [experts]`."""

    vectors: Float32
    weights: Float32
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Calibration:
    """How a model's scores become confidences: the weights of `wordreel.hubness.confidence`."""

    height: float
    crowd: float
    growth: float
    likeness: float
    toll: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least, most = (-1e4, 1e4) if name == "toll" else (0.0, 1e3)
            if not least <= value <= most:
                raise HubnessError(f"{name} must be between {least:g} and {most:g}, not {value!r}")
