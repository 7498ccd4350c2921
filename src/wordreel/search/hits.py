"""What searches return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from wordreel.errors import WordreelError

if TYPE_CHECKING:
    from wordreel.catalogue.files import FileKind, FileRecord
    from wordreel.catalogue.passes import Pass
    from wordreel.catalogue.records import StoredClip
    from wordreel.search.query_fields import SearchOrder
    from wordreel.search.scoring import Note


REQUIRED = ("person", "tag")  # experts of reasons that a search requires: first, without a share in the score


@dataclass(frozen=True)
class Reason:
    """Why an item was found: an expert, its share of the score, and what it saw, heard or read."""

    expert: str
    share: float  # of the hit's score; the shares of one hit add up to it
    what: str  # a recognised label, or the words themselves
    at: tuple[float, float] | None = None  # seconds, for words

    def __str__(self) -> str:
        return f"{self.expert}: {self.what}"


def within(why: Iterable[Reason], start: float, end: float) -> tuple[Reason, ...]:
    """Return the reasons of a moment, with times inside it.

    Those of words that begin before it start with it.

    A reason of a whole video may lie elsewhere in it; it loses its time.

    >>> reasons = [Reason("speech words", 0.1, "“hi”", (3.0, 6.0)), Reason("ocr", 0.1, "“EXIT”", (9.0, 9.5))]
    >>> [reason.at for reason in within(reasons, 5.0, 8.0)]
    [(5.0, 6.0), None]
    """

    def inside(at: tuple[float, float] | None) -> tuple[float, float] | None:
        if at is None or end <= start:  # a picture has no time
            return at
        first, last = max(at[0], start), min(at[1], end)
        return (first, last) if first <= last else None

    return tuple(replace(reason, at=inside(reason.at)) for reason in why)


@dataclass(frozen=True)
class Hit:
    """A moment of a video. A still picture has `start == end == 0`."""

    rank: int
    score: float
    path: Path  # of an imported item, `dataset:NAME/id`
    start: float
    end: float
    kind: FileKind
    duration: float
    content: str  # hash of the file's bytes: the same however the file is named
    why: tuple[Reason, ...] = ()
    confidence: float | None = None  # how unusual this score is for this moment; None without a query bank
    norm: str = "none"  # what corrected the score: "none", or the query bank and its method
    captured: str = ""  # when the file was recorded, as ISO 8601 text in local time; "" for an imported item
    analysis: Pass = "thorough"  # that the file has had: "quick" while it is known by its key frames alone


@dataclass(frozen=True)
class Match(Hit):
    """A look-alike, and the moment of the query video that it resembles."""

    like: tuple[float, float] = (0.0, 0.0)
    identical: bool = False  # the same bytes as the query


@dataclass(frozen=True)
class SequenceHit(Hit):
    """A hit for `text`, whose `score` is the sum of both, and the later moment that matches `then`."""

    then: tuple[float, float] = (0.0, 0.0)
    then_score: float = 0.0


@dataclass(frozen=True)
class CaptionMatch:
    """A caption of a video, the moment it fits best, and why."""

    rank: int
    score: float
    text: str
    start: float
    end: float
    why: tuple[Reason, ...] = ()
    norm: str = "none"


@dataclass(frozen=True)
class MatchTimeline:
    """How well words match a video over time.

    `scores[i]`, in [0, 1], holds from second `i · step` on; `moments` are the best clips as
    (start, end, score), best first. Scores are confidences where a query bank can tell (`calibrated`);
    without one, 0 is the median of the library and 1 its best.
    """

    step: float
    duration: float
    scores: tuple[float, ...]
    moments: tuple[tuple[float, float, float], ...]
    norm: str = "none"
    calibrated: bool = False


H = TypeVar("H", bound=Hit, covariant=True)


@dataclass(frozen=True)
class Results(Sequence[H], Generic[H]):
    """The hits of one query, best first; a sequence of them.

    Attributes:
        hits: The hits.
        norm: The label of the normalisation that was chosen: "none", or the query bank and its method.
        note: Why the ranking is plain, where that may surprise.
        notices: What of the words was not understood, or is taken for a date, in sentences.
        total: How many videos pass the filters.
        weights: The query's mixture weight of each expert, in the model's order; None for look-alikes.
        plain: With `compare`, the hits of plain ranking.
    """

    hits: tuple[H, ...]
    norm: str = "none"
    note: Note | None = None
    notices: tuple[str, ...] = ()
    total: int = 0
    weights: tuple[float, ...] | None = None
    plain: tuple[H, ...] | None = None

    @overload
    def __getitem__(self, index: int) -> H: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[H]: ...
    def __getitem__(self, index: int | slice) -> H | Sequence[H]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[H]:
        return iter(self.hits)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the hits as dictionaries of plain values, as `wordreel search --json` prints them.

        >>> Results(()).to_dicts()
        []
        """
        return [{**asdict(hit), "path": str(hit.path)} for hit in self.hits]

    def to_pandas(self) -> Any:
        """Return the hits as a table, one row each.

        Raises:
            WordreelError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise WordreelError("a table needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.to_dicts())

    def sorted_by(self, order: SearchOrder) -> Results[H]:
        """Return the same hits in this order; they keep their ranks."""
        if order == "relevance":
            return self
        return replace(self, hits=tuple(sorted(self.hits, key=attrgetter("captured"), reverse=True)))

    def rank_changes(self) -> list[tuple[H, int | None]]:
        """Return, with `compare`, each hit and its rank in the plain list, None where it is not in it."""
        several = len({hit.content for hit in self.hits}) < len(self.hits)  # moments of one video

        def key(hit: Hit) -> object:
            return (hit.content, hit.start, hit.end) if several else hit.content

        before = {key(hit): hit.rank for hit in self.plain or ()}
        return [(hit, before.get(key(hit))) for hit in self.hits]


AnyHit = TypeVar("AnyHit", bound=Hit)


def hit_of(
    kind: type[AnyHit],
    record: FileRecord,
    moment: StoredClip,
    why: Iterable[Reason],
    **more: Any,
) -> AnyHit:
    """Return the hit, of this kind, for the moment of a file to display; `more` are its other fields."""
    return kind(
        why=within(why, moment.start, moment.end),
        path=Path(record.path),
        start=moment.start,
        end=moment.end,
        kind=record.kind,
        duration=record.duration,
        content=moment.content,
        captured=record.captured,
        analysis=record.analysis,
        **more,
    )
