"""What goes over the wire about the library itself: videos, banks, settings, uploads, hubness."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from wordreel.banks.sources import LONGEST
from wordreel.serve.shapes import BankName, Beta, Folder, Hit, Job, NormName, Reason, Request, Took

Sentence = Annotated[str, Field(min_length=1, max_length=LONGEST)]


class Checked(BaseModel):
    passed: bool
    verdict: str
    method: str
    checked_at: float
    current: bool = Field(description="the bank has not changed since")


class BankEntry(BaseModel):
    name: str
    source: str
    made_at: float
    size: int
    checked: Checked | None


class BanksResponse(BaseModel):
    banks: list[BankEntry]


class TextsSource(Request):
    texts: list[Sentence] = Field(min_length=1, max_length=100_000)


class NewBank(Request):
    """A bank of the everyday queries that come with wordreel, or of your own."""

    name: BankName = Field(examples=["mine"])
    source: Literal["builtin"] | TextsSource = "builtin"


class CheckRequest(Request):
    """Captions by path or file name of the video that they are about."""

    captions: dict[str, list[Sentence]] = Field(
        min_length=1, max_length=100_000, examples=[{"party.mp4": ["friends dance in a kitchen"]}]
    )


class ModelEntry(BaseModel):
    name: str
    fingerprint: str
    experts: list[str]


class StatusResponse(BaseModel):
    version: str
    library: str
    read_only: bool
    model: ModelEntry
    videos: int
    clips: int = Field(description="those that can be found")
    unembedded: int = Field(description="clips that the model has not embedded and that cannot be found")
    problem: str | None = Field(description="why searches find nothing or not everything; what to do")
    seconds: float
    experts: list[str] = Field(description="experts that have something to say of some file")
    folders: list[str] = Field(description="folders of the library's files, the fullest first")
    banks: list[BankEntry]
    jobs_running: int
    login: Literal["none", "token"]
    roots: list[str]
    norms: list[str]
    max_upload: int
    log_queries: bool


class VideoEntry(BaseModel):
    content: str
    path: str
    name: str
    kind: str
    duration: float
    added_at: float


class VideosResponse(BaseModel):
    total: int
    items: list[VideoEntry]


class VideoResponse(VideoEntry):
    """All that is known of one video."""

    paths: list[str]
    size: int
    width: int
    height: int
    container: str
    clips: list[dict[str, Any]]
    experts: list[dict[str, Any]]
    words: list[dict[str, Any]]
    thumb: str
    preview: str
    media: str


class Warmth(BaseModel):
    start: float
    end: float
    score: float


class MatchResponse(BaseModel):
    step: float
    duration: float
    scores: list[float] = Field(description="0: like the median item of the library; 1: its best")
    moments: list[Warmth]
    norm: str


class LikeResponse(BaseModel):
    hits: list[Hit]
    took: Took


class CaptionsRequest(Request):
    captions: list[Sentence] = Field(
        min_length=1, max_length=5_000, examples=[["a man sings", "a dog barks"]]
    )
    limit: int = Field(5, ge=1, le=200)
    norm: NormName = "none"
    beta: Beta | None = None


class RankedCaption(BaseModel):
    rank: int
    score: float
    text: str
    start: float
    end: float
    why: list[Reason]
    norm: str


class RankedCaptions(BaseModel):
    captions: list[RankedCaption]


class StoredCaptions(BaseModel):
    captions: list[dict[str, Any]]


class Forgotten(BaseModel):
    forgotten: list[str]


class FolderRequest(Request):
    path: Folder


class Upload(BaseModel):
    id: str
    name: str
    kind: str
    duration: float
    bytes: int


class UploadResponse(BaseModel):
    upload: Upload
    job: Job | None


class JobsResponse(BaseModel):
    jobs: list[Job]


class FailureEntry(BaseModel):
    path: str
    name: str
    reason: str
    failed_at: float


class Settings(Request):
    log_queries: bool = False
    log_bank: BankName = "asked"


class LoginRequest(Request):
    token: str = Field(min_length=1, max_length=1000)


class Done(BaseModel):
    ok: bool = True


class Measures(BaseModel):
    skewness: float
    robin_hood: float
    gini: float
    antihub_occurrence: float
    hub_occurrence: float
    largest: int
    histogram: list[int]


class Hub(BaseModel):
    content: str
    kind: str
    name: str
    thumb: str
    count_before: int
    count_after: int


class HubnessResponse(BaseModel):
    bank: str
    queries: int
    videos: int
    k: int
    norm: str
    note: str
    edges: list[int]
    before: Measures
    after: Measures
    hubs: list[Hub]
