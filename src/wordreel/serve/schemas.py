"""Pydantic models that several routes share: searches and hits, errors and jobs.

A search request has the fields of `Query` and its filters.
"""

from __future__ import annotations

from dataclasses import Field as DataclassField
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from wordreel.catalogue.jobs import Job
from wordreel.search.hits import Reason
from wordreel.search.query import LONGEST_QUERY, Query, VideoMoment, question_fields
from wordreel.search.query_fields import QueryField, query_field

CONTENT = r"^[0-9A-Za-z_-]{1,128}$"  # the hash of a file's bytes, or what names an imported item


def _moment(value: datetime) -> datetime:
    """Return a time with a zone, the server's by default; refuse one that no calendar can hold."""
    try:
        return value.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        raise ValueError("the date is out of range") from None


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("say what to look for; the text is empty")
    return value


Timestamp = Annotated[datetime, AfterValidator(_moment)]
Text = Annotated[
    str, Field(max_length=LONGEST_QUERY, examples=["a dog runs on the beach"]), AfterValidator(_not_blank)
]
Folder = Annotated[
    str, Field(max_length=4096, pattern=r"^(/|dataset:)[^\x00]*$", examples=["/home/me/Videos"])
]
Content = Annotated[str, Field(pattern=CONTENT, description="the hash of a file's bytes")]
Seconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Beta = Annotated[float, Field(gt=0, le=1e4, allow_inf_nan=False, description="β of the inverted softmax")]
NormName = Annotated[str, Field(max_length=40, description="auto, none, or a method; see /api/status")]
ShortText = Annotated[str, Field(min_length=1, max_length=100)]


class RequestModel(BaseModel):
    """Names that are not known are refused: a misspelt filter must not be passed over."""

    model_config = ConfigDict(extra="forbid")


class SpanModel(BaseModel):
    """Seconds of a video."""

    start: float
    end: float


class ThenModel(SpanModel):
    """The later moment of a pair."""

    score: float


class HitModel(BaseModel):
    """A moment of a video, and why it was found."""

    rank: int
    score: float
    confidence: float | None = Field(description="how sure; null without a query bank")
    norm: str = Field(description="what corrected the score")
    content: str
    path: str
    name: str
    kind: str
    duration: float
    captured: str = Field(
        description="when it was recorded, ISO 8601 in local time; empty for imported items"
    )
    analysis: Literal["quick", "thorough"] = Field(description="quick: known by its key frames alone so far")
    start: float
    end: float
    why: list[Reason]
    weights: dict[str, float] = Field(description="each expert's part in the mixture")
    thumb: str
    preview: str
    media: str
    then: ThenModel | None = None
    like: SpanModel | None = Field(None, description="the moment of the query video that it is like")
    identical: bool = Field(False, description="the same bytes as the picture of the query")


class TimingModel(BaseModel):
    """Milliseconds: waiting for a free thread, and all together."""

    queue_ms: float
    total_ms: float


class SearchResponse(BaseModel):
    """The hits of a search."""

    query: dict[str, Any]
    norm: str
    note: str = Field(description="why the ranking is what it is, where that may surprise")
    notices: list[str] = Field(description="what of the words was not understood, or is a date")
    took: TimingModel
    total_estimate: int = Field(description="videos that pass the filters")
    hits: list[HitModel]
    plain: list[HitModel] | None = Field(None, description="with `compare`, the hits of plain ranking")


class NextStepModel(BaseModel):
    """What to do about an error: in words, as a command after `wordreel`, and where the page does it."""

    text: str = Field(examples=["build a query bank"])
    command: str | None = Field(None, examples=["bank build"])
    page: str | None = Field(None, examples=["Settings → Ranking"])


class ErrorModel(BaseModel):
    """What went wrong."""

    code: str = Field(examples=["not_found"])
    message: str = Field(examples=["there is no such file in the library"])
    field: str | None = None
    next_step: NextStepModel | None = None


class ErrorResponse(BaseModel):
    """Every error."""

    error: ErrorModel


class JobModel(BaseModel):
    """A job."""

    id: int
    kind: Literal["add", "thorough", "embed", "bank", "check", "use"]
    title: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    made_at: float
    started_at: float | None
    ended_at: float | None
    progress: dict[str, Any] | None
    report: dict[str, Any] | None
    error: str | None

    @classmethod
    def of(cls, job: Job) -> JobModel:
        """Return a job as it goes over the wire."""
        return cls(**vars(job))


class JobResponse(BaseModel):
    """One job."""

    job: JobModel

    @classmethod
    def of(cls, job: Job) -> JobResponse:
        """Return a job as it goes over the wire."""
        return cls(job=JobModel.of(job))


class OkResponse(BaseModel):
    """It is done."""

    ok: bool = True


MOST_VALUES = 20  # of a field that holds several
TYPES: dict[str, Any] = {
    "text": Text,
    "name": ShortText,
    "day": Timestamp,
    "folder": Folder,
    "file": Content,
}
"""Of the kinds that HTTP bounds otherwise than the command line; a file is the id of one."""


def _unset(value: Any) -> Any:
    return None if value == "" else value


def _field(field: DataclassField[Any]) -> tuple[Any, Any]:
    about = query_field(field)
    kind = TYPES.get(about.kind, about.type)
    if about.kind in ("number", "count"):
        kind = Annotated[kind, Field(**_limits(about))]
    if about.several:
        return list[kind], Field([], max_length=MOST_VALUES, description=about.help)  # type: ignore[valid-type]
    if field.default is None:
        kind = Annotated[kind | None, BeforeValidator(_unset)]
    return kind, Field(field.default, description=about.help)


def _limits(about: QueryField) -> dict[str, Any]:
    most = about.at_most if about.served_at_most is None else about.served_at_most
    limits = {"ge": about.at_least, "le": most} | ({"allow_inf_nan": False} if about.kind == "number" else {})
    return {name: value for name, value in limits.items() if value is not None}


if TYPE_CHECKING:

    class SearchRequest(RequestModel):
        """What to look for."""

        image: str | None

else:
    SearchRequest = create_model(
        "SearchRequest",
        __base__=RequestModel,
        __doc__="What to look for: exactly one of `text`, `image` (an upload's id) and `like` (a video).",
        **{field.name: _field(field) for field in question_fields()},
    )


def query_of(request: SearchRequest) -> Query:
    """Return the request as a query; its image is still the id of an upload.

    >>> query_of(SearchRequest(text="a red car", kind="video", limit=3)).filters.kind
    'video'
    """
    values: dict[str, Any] = {field.name: getattr(request, field.name) for field in question_fields()}
    if values["like"] is not None:
        values["like"] = VideoMoment(content=values["like"], second=values["second"])
    return Query.build(**values)
