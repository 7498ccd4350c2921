"""Pydantic models of the HTTP API: videos, banks, settings, uploads and hubness."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from wordreel.banks.sources import LONGEST
from wordreel.serve.schemas import (
    BankName,
    Beta,
    JobModel,
    NormName,
    ReasonModel,
    RequestModel,
)

Sentence = Annotated[str, Field(min_length=1, max_length=LONGEST)]


class BankCheckModel(BaseModel):
    passed: bool
    verdict: str
    method: str
    checked_at: float
    current: bool = Field(description="the bank has not changed since")


class BankModel(BaseModel):
    name: str
    source: str
    made_at: float
    size: int
    checked: BankCheckModel | None


class BanksResponse(BaseModel):
    banks: list[BankModel]


class TextsSource(RequestModel):
    texts: list[Sentence] = Field(min_length=1, max_length=100_000)


class BankRequest(RequestModel):
    """A bank of the everyday queries that come with wordreel, or of your own."""

    name: BankName = Field(examples=["mine"])
    source: Literal["builtin"] | TextsSource = "builtin"


class BankCheckRequest(RequestModel):
    """Captions by path or file name of the video that they are about."""

    captions: dict[str, list[Sentence]] = Field(
        min_length=1, max_length=100_000, examples=[{"party.mp4": ["friends dance in a kitchen"]}]
    )


class ModelSummary(BaseModel):
    name: str
    fingerprint: str
    experts: list[str]


class ModelModel(BaseModel):
    key: str = Field(description="what POST /api/models takes")
    name: str
    kind: Literal["built-in", "trained", "backbone"]
    title: str
    in_use: bool
    download: int = Field(description="bytes to download before it can be used; 0 if it is here")
    licence: str
    speed: str


class ModelsResponse(BaseModel):
    models: list[ModelModel]


class UseRequest(RequestModel):
    model: str = Field(min_length=1, max_length=200, examples=["clip-vit-b-32"])
    download: bool = Field(False, description="agree to the download of a backbone that is not here")


class StatusResponse(BaseModel):
    version: str
    library: str
    read_only: bool
    model: ModelSummary
    videos: int
    quick: int = Field(description="videos that wait for the thorough pass, known by key frames alone")
    clips: int = Field(description="those that can be found")
    unembedded: int = Field(description="clips that the model has not embedded and that cannot be found")
    index: str = Field(description="the index of searches: exact, or its measured recall")
    problem: str | None = Field(description="why searches find nothing or not everything; what to do")
    seconds: float
    experts: list[str] = Field(description="experts that have something to say of some file")
    folders: list[str] = Field(description="folders of the library's files, the fullest first")
    banks: list[BankModel]
    jobs_running: int
    login: Literal["none", "token"]
    roots: list[str]
    norms: list[str]
    max_upload: int
    log_queries: bool


FileState = Literal["ready", "quick", "preparing", "missing"]


class VideoSummary(BaseModel):
    content: str
    path: str
    name: str
    kind: str
    duration: float
    added_at: float
    analysis: Literal["quick", "thorough"] = Field(description="quick: known by its key frames alone so far")
    state: FileState = Field(
        description="preparing: cannot be found yet; missing: no file of this content is where it was"
    )


class VideosResponse(BaseModel):
    total: int
    items: list[VideoSummary]


class VideoResponse(VideoSummary):
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


class MomentScore(BaseModel):
    start: float
    end: float
    score: float


class MatchResponse(BaseModel):
    step: float
    duration: float
    scores: list[float] = Field(
        description="confidences; not calibrated: 0 is the library's median, 1 its best"
    )
    moments: list[MomentScore] = Field(description="best first")
    norm: str
    calibrated: bool = Field(description="scores are confidences; false without a query bank")


class CaptionsRequest(RequestModel):
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
    why: list[ReasonModel]
    norm: str


class RankedCaptions(BaseModel):
    captions: list[RankedCaption]


class StoredCaptions(BaseModel):
    captions: list[dict[str, Any]]


class RemovedResponse(BaseModel):
    forgotten: list[str]


def _whole_path(value: str) -> str:
    if not value.startswith(("/", "~")) or "\x00" in value:
        raise ValueError("write the whole path, such as ~/Videos")
    return value


FolderPath = Annotated[str, Field(max_length=4096), AfterValidator(_whole_path)]


class FolderRequest(RequestModel):
    path: FolderPath = Field(examples=["~/Videos"])


class FolderEntry(BaseModel):
    path: str
    name: str


class FolderResponse(BaseModel):
    path: str | None = Field(description="null for the list of roots")
    parent: str | None = Field(description="null at a root")
    folders: list[FolderEntry]
    files: int = Field(description="files directly in it that look like media")


class UploadModel(BaseModel):
    id: str
    name: str
    kind: str
    duration: float
    bytes: int


class UploadResponse(BaseModel):
    upload: UploadModel
    job: JobModel | None


class JobsResponse(BaseModel):
    jobs: list[JobModel]
    paused: bool = Field(description="no job runs until they are resumed")


class PauseRequest(RequestModel):
    paused: bool


class ExamplesResponse(BaseModel):
    examples: list[str] = Field(description="queries that find something in this library")


class FailureModel(BaseModel):
    path: str
    name: str
    reason: str
    failed_at: float


class SettingsModel(RequestModel):
    log_queries: bool = False
    log_bank: BankName = "asked"


class LoginRequest(RequestModel):
    token: str = Field(min_length=1, max_length=1000)


class OkResponse(BaseModel):
    ok: bool = True


class HubnessMeasures(BaseModel):
    skewness: float
    robin_hood: float
    gini: float
    antihub_occurrence: float
    hub_occurrence: float
    largest: int
    histogram: list[int]


class HubModel(BaseModel):
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
    before: HubnessMeasures
    after: HubnessMeasures
    hubs: list[HubModel]
