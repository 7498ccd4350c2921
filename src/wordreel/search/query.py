"""`Query`: everything one can ask of a library, checked when it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, get_args

from wordreel.errors import BankError, NextStep, QueryError
from wordreel.search.filters import FilterArguments, Filters
from wordreel.search.query_fields import AUTO, METADATA, SEARCHABLE, SearchNorm, SearchOrder, asked

LONGEST_QUERY = 10_000  # characters
WORDS = ("phrases", "then_phrases", "without")


@dataclass(frozen=True)
class VideoMoment:
    """A video to find look-alikes of: a file, or a video of the library by its content hash.

    Args:
        path: A file; it need not be in the library.
        second: Search only with the clip at this second.
        content: The content hash of a video of the library, instead of a path.

    >>> VideoMoment("party.mp4", second=95)
    VideoMoment(path=PosixPath('party.mp4'), second=95, content=None)
    """

    path: str | PathLike[str] | None = None
    second: float | None = None
    content: str | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.content is None):
            raise QueryError("name a video by its path or by its content hash", field="like")
        if self.path is not None:
            object.__setattr__(self, "path", Path(self.path).expanduser())


class QueryArguments(FilterArguments, total=False):
    """The fields of `Query` but its text, and those of its filters, as keyword arguments."""

    then: str | None
    phrases: Sequence[str]
    then_phrases: Sequence[str]
    without: Sequence[str]
    like: VideoMoment | str | PathLike[str] | None
    second: float | None
    image: str | PathLike[str] | None
    filters: Filters
    norm: SearchNorm
    bank: str | None
    beta: float | None
    limit: int
    offset: int
    sort: SearchOrder
    moments: bool
    min_confidence: float
    compare: bool


@dataclass(frozen=True)
class Query:
    """What to look for and how to rank it. Exactly one of `text`, `like` and `image` is given.

    Args:
        text: Words.
        then: Words for what happens later in the same video; needs `text`.
        phrases: Words that must be said or shown in the moment; `"…"` in a text adds one.
        then_phrases: The same for the moment of `then`.
        without: What the moments must not show or say; `-word` and "without a word" in a text add one.
        like: A file to find look-alikes of, in the library or not; `VideoMoment(content=…)` for a video of
            the library.
        second: Search only with the clip of `like` at this second.
        image: A picture file to find look-alikes of.
        filters: Which videos may be returned.
        norm: Query-bank normalisation: "auto" uses a bank that passed its check, "none" ranks by plain
            similarity, or the name of a method.
        bank: The name of the bank; the checked one by default.
        beta: Inverse temperature of the inverted softmax; by default the one that the bank's check chose.
        limit: How many hits to return.
        offset: How many of the best hits to skip.
        sort: "date" lists the best hits by when they were recorded, the newest first.
        moments: Rank every moment instead of the best one of each video.
        min_confidence: Leave out less confident hits; needs a query bank of at least 100 queries.
        compare: Also return the plain ranking, to compare the normalised one with.
        notices: What some words were taken for; the results repeat it.

    Raises:
        QueryError: The fields contradict each other or are out of range.
        BankError: No search can use this `norm`.

    >>> Query("  somebody opens a door ", then="a cat runs out").text
    'somebody opens a door'
    """

    text: str | None = asked(None, "text", "What to look for, in your own words.")
    then: str | None = asked(None, "text", "What happens later in the same video.")
    phrases: Sequence[str] = asked(
        (), "name", "Words that must be said or shown.", flag="--phrase", several=True
    )
    then_phrases: Sequence[str] = asked(
        (), "name", "The same for the moment of --then.", flag="--then-phrase", several=True
    )
    without: Sequence[str] = asked(
        (), "name", "What the moments must not show or say.", flag="--without", several=True
    )
    like: VideoMoment | str | PathLike[str] | None = asked(
        None, "file", "Find what is like this video, sound or picture."
    )
    second: float | None = asked(None, "number", "Of `like`, only the clip at this second.", at_least=0)
    image: str | PathLike[str] | None = asked(None, "file", "Find what looks like this picture.", saved=False)
    filters: Filters = field(default_factory=Filters)
    norm: SearchNorm = asked(
        AUTO, "name", "Query-bank normalisation: auto, none, dis, is, csls, nnn, cent, gc or sinkhorn."
    )
    bank: str | None = asked(None, "name", "The query bank; by default the checked one.")
    beta: float | None = asked(
        None, "number", "β of the inverted softmax; by default from the bank's check, or without labels.",
        at_least=0, served_at_most=1e4,
    )  # fmt: skip
    limit: int = asked(
        10, "count", "How many results to return.",
        flag="--limit,-n", at_least=1, served_at_most=200, saved=False,
    )  # fmt: skip
    offset: int = asked(
        0, "count", "How many of the best to skip.", at_least=0, served_at_most=10_000, saved=False
    )
    sort: SearchOrder = asked(
        "relevance", "choice", "List the best results by relevance, or by date, the newest first.",
        choices=get_args(SearchOrder),
    )  # fmt: skip
    moments: bool = asked(False, "flag", "List every matching moment, not the best one of each video.")
    min_confidence: float = asked(
        0.0, "number", "Leave out less confident hits; needs a query bank.", at_least=0, at_most=1
    )
    compare: bool = asked(
        False, "flag", "Return the plain and the normalised ranking side by side.", saved=False
    )
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_question()
        for name in ("text", "then"):
            if (words := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_text(words, name))
        for name in WORDS:
            given = getattr(self, name) or ()
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        if self.like is not None and not isinstance(self.like, VideoMoment):
            object.__setattr__(self, "like", VideoMoment(self.like, self.second))
        check_norm(self.norm)
        check_limit(self.limit)
        if self.sort not in get_args(SearchOrder):
            raise QueryError(f"cannot sort by {self.sort!r}, only by relevance or date", field="sort")
        if self.beta is not None and not self.beta > 0:
            raise QueryError(f"β is more than 0, not {self.beta:g}", field="beta")
        if self.offset < 0:
            raise QueryError(f"cannot skip {self.offset} results", field="offset")
        if not 0 <= self.min_confidence <= 1:
            raise QueryError(
                f"a confidence is between 0 and 1, not {self.min_confidence:g}", field="min_confidence"
            )

    def _check_question(self) -> None:
        given = [name for name in ("text", "image", "like") if getattr(self, name) is not None]
        if len(given) != 1:
            raise QueryError("ask with exactly one of text, image and like", field="text")
        if self.text is None and any(getattr(self, name) for name in WORDS):
            raise QueryError("words that must or must not be there need a text", field="text")
        if self.second is not None and self.like is None:
            raise QueryError("`second` is of `like`: name a video", field="second")
        if self.then is not None and self.text is None:
            raise QueryError("`then` needs `text`: say what comes first", field="then")
        if self.then is not None and self.moments:
            raise QueryError(
                "`then` finds one pair of moments in each video; leave out `moments`", field="moments"
            )
        if self.text is None and self.min_confidence > 0:
            raise QueryError(
                "look-alikes have no confidence; leave out min_confidence", field="min_confidence"
            )
        if self.text is None and self.compare:
            raise QueryError("look-alikes are not normalised: there is nothing to compare", field="compare")

    @classmethod
    def build(cls, text: str | None = None, **arguments: Unpack[QueryArguments]) -> Query:
        """Return a query from flat arguments: those named as fields of `Filters` become its filters.

        >>> Query.build("a dog", kind="video", limit=3).filters.kind
        'video'
        """
        given: dict[str, Any] = dict(arguments)
        chosen = {one.name: given.pop(one.name) for one in fields(Filters) if one.name in given}
        if chosen and "filters" in given:
            raise QueryError(f"give `filters` or {', '.join(chosen)}, not both", field="filters")
        return cls(text, **given) if "filters" in given else cls(text, filters=Filters(**chosen), **given)

    @property
    def texts(self) -> list[str]:
        """The texts to encode: what to find, and what must not be there."""
        return [*self.wanted, *self.without]

    @property
    def wanted(self) -> list[str]:
        """The texts to find: none, one, or with `then` two."""
        return [words for words in (self.text, self.then) if words is not None]

    @property
    def video(self) -> VideoMoment | None:
        """The video or picture to find look-alikes of."""
        if self.image is not None:
            return VideoMoment(self.image)
        return self.like if isinstance(self.like, VideoMoment) else None


def check_text(text: str, field: str = "text") -> str:
    """Return the words of a text query without the spaces around them."""
    words = text.strip()
    if not words:
        raise QueryError("the query is empty; say what to look for", field=field)
    if len(words) > LONGEST_QUERY:
        raise QueryError(f"the query has {len(words)} characters; {LONGEST_QUERY} are allowed", field=field)
    return words


def check_limit(limit: int, what: str = "results") -> None:
    """Refuse a limit that is out of range."""
    if limit < 1:
        raise QueryError(f"cannot show {limit} {what}; ask for 1 or more", field="limit")


def check_norm(name: str) -> None:
    """Raise a `BankError` for a normalisation that a search cannot use."""
    if name == AUTO or name in SEARCHABLE:
        return
    from wordreel.hubness import METHODS

    if name not in METHODS:
        raise BankError(f"there is no normalisation {name!r}; choose one of auto, {', '.join(SEARCHABLE)}")
    why = (
        "sees all test queries at once, and a search has one"
        if METHODS[name].transductive
        else "needs a second bank of videos"
    )
    raise BankError(
        f"{name!r} {why}", NextStep("choose another, or use it on similarity matrices", command="qbnorm")
    )


def needs_confidence() -> QueryError:
    """Return the error for a confidence that no bank can tell."""
    from wordreel.catalogue.banks import BUILD_A_BANK

    return QueryError("a minimum confidence needs a query bank of at least 100 queries", BUILD_A_BANK)


def question_fields() -> list[Field[Any]]:
    """Return the fields of `Query` and of its filters, flat, in the order of the help."""
    ranked = [one for one in fields(Query) if METADATA in one.metadata]
    asks = [one.name for one in ranked].index("norm")
    return [*ranked[:asks], *fields(Filters), *ranked[asks:]]
