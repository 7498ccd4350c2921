"""Query banks, the query log, and hubness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.sources import LONGEST
from wordreel.catalogue import banks as bank_store
from wordreel.catalogue.banks import BankRow
from wordreel.serve.display import display_name, thumb_url
from wordreel.serve.hub_counts import HubCounts, best_of, count_occurrences
from wordreel.serve.problems import Problem
from wordreel.serve.routes import Served, in_pool
from wordreel.serve.schemas import JobResponse, NormName, OkResponse, RequestModel, ShortText
from wordreel.serve.service import Service

router = APIRouter(tags=["banks"])

Named = Annotated[str, Path(min_length=1, max_length=100)]
Sentence = Annotated[str, Field(min_length=1, max_length=LONGEST)]
NOTE = "counted over the sample queries themselves; a check measures on others"
WORSE = "this ranking finds the same files even more often than similarity alone: better leave it out"


class BankCheckModel(BaseModel):
    """What the last check of a bank said."""

    passed: bool
    verdict: str
    method: str
    checked_at: float
    current: bool = Field(description="the bank has not changed since")


@dataclass(frozen=True)
class BankModel(BankRow):
    """A bank, and what its last check with the library's model said."""

    checked: BankCheckModel | None


class BanksResponse(BaseModel):
    """Every bank."""

    banks: list[BankModel]


class TextsSource(RequestModel):
    """Queries of your own."""

    texts: list[Sentence] = Field(min_length=1, max_length=100_000)


class BankRequest(RequestModel):
    """A bank of the everyday queries that come with wordreel, or of your own."""

    name: ShortText = Field(examples=["mine"])
    source: Literal["builtin"] | TextsSource = "builtin"


class BankCheckRequest(RequestModel):
    """Captions by path or file name of the video that they are about."""

    captions: dict[str, list[Sentence]] = Field(
        min_length=1, max_length=100_000, examples=[{"party.mp4": ["friends dance in a kitchen"]}]
    )


class SettingsModel(RequestModel):
    """Whether queries are logged, and into which bank."""

    log_queries: bool = False
    log_bank: ShortText = "asked"


class HubnessMeasures(BaseModel):
    """Measures of how unevenly files are found."""

    skewness: float
    robin_hood: float
    gini: float
    antihub_occurrence: float
    hub_occurrence: float
    largest: int
    histogram: list[int]


class HubModel(BaseModel):
    """A file that is found often, before and after a normalisation."""

    content: str
    kind: str
    name: str
    thumb: str
    count_before: int
    count_after: int


class HubnessResponse(BaseModel):
    """How often files are found, before and after a normalisation."""

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


@router.get("/api/banks")
def banks(service: Served) -> BanksResponse:
    """List the banks, and what the last check with the library's model said."""
    return BanksResponse(banks=listed(service))


@router.post("/api/banks", status_code=202)
def build(body: BankRequest, service: Served) -> JobResponse:
    """Make a bank."""
    if _exists(service, body.name):
        message = "there are such sample queries already; choose another name"
        raise Problem(409, "bank_exists", message, "name")
    _check_name(body.name, "name")
    request = body.model_dump()
    return JobResponse.of(service.jobs.put("bank", body.name, request))


@router.post("/api/banks/{name}/check", status_code=202)
def check(name: Named, body: BankCheckRequest, service: Served) -> JobResponse:
    """Measure whether a bank helps, on captions of videos in the library."""
    _check_exists(service, name)
    return JobResponse.of(service.jobs.put("check", name, {"bank": name, "captions": body.captions}))


@router.delete("/api/banks/{name}")
def forget(name: Named, service: Served) -> OkResponse:
    """Forget a bank."""
    _check_exists(service, name)
    service.library.banks.delete(name)
    service.live.banks_changed()
    return OkResponse()


@router.get("/api/settings")
def settings(service: Served) -> SettingsModel:
    """Tell whether queries are put into a bank, and into which."""
    return SettingsModel(log_queries=service.query_log.on, log_bank=service.query_log.bank)


@router.put("/api/settings")
def set_settings(body: SettingsModel, service: Served) -> SettingsModel:
    """Turn the log of queries on or off."""
    _check_name(body.log_bank, "log_bank")
    service.query_log.set(body.log_queries, body.log_bank)
    return settings(service)


@router.get("/api/hubness")
@in_pool("analysis")
def hubness(
    service: Served,
    bank: Annotated[ShortText | None, Query()] = None,
    norm: Annotated[NormName, Query()] = "dis",
) -> HubnessResponse:
    """Count how often videos are among the best of a bank's queries, before and after a normalisation."""
    state = service.live.now
    largest = largest_bank(service)
    if largest is None or not len(state.searcher):
        raise Problem(409, "no_bank", "there are no sample queries to count with; add some first")
    name = bank or largest
    _check_exists(service, name)
    scoring = state.check().scoring(norm, name)
    work = EmbeddedBank.open(state.searcher, bank_store.read_bank(service.store, name))
    counts = state.cached(
        ("hubness", name, norm, work.bank.revision), lambda: count_occurrences(work, scoring.norm)
    )
    paths = state.searcher.snapshot.paths()
    before, after = (HubnessMeasures(**measures) for measures in counts.measures)
    return HubnessResponse(
        bank=name,
        queries=len(work.bank),
        videos=len(counts.contents),
        k=best_of(len(counts.contents)),
        norm=scoring.norm.label,
        note=NOTE if after.skewness <= before.skewness else f"{NOTE}; {WORSE}",
        edges=counts.edges,
        before=before,
        after=after,
        hubs=[_hub(service, counts, number, paths) for number in counts.hubs()],
    )


def listed(service: Service) -> list[BankModel]:
    """Return the banks as they go over the wire."""
    return [
        BankModel(**vars(row), checked=_last_check(service, row.name))
        for row in bank_store.list_banks(service.store)
    ]


def largest_bank(service: Service) -> str | None:
    """Return the name of the bank with the most queries; None where there is no bank."""
    rows = bank_store.list_banks(service.store)
    return max(rows, key=lambda row: (row.size, row.name)).name if rows else None


def _last_check(service: Service, name: str) -> BankCheckModel | None:
    check = bank_store.read_check(service.store, name, service.model.fingerprint)
    if check is None:
        return None
    return BankCheckModel(
        passed=check.passed,
        verdict=str(check.report.get("verdict", "")),
        method=str(check.report.get("method", "")),
        checked_at=check.checked_at,
        current=check.revision == bank_store.read_bank(service.store, name).revision,
    )


def _exists(service: Service, name: str) -> bool:
    return any(row.name == name for row in bank_store.list_banks(service.store))


def _check_exists(service: Service, name: str) -> None:
    if not _exists(service, name):
        raise Problem(404, "not_found", "there are no sample queries of that name")


def _check_name(name: str, field: str) -> None:
    if not name.isprintable() or "/" in name or not name.strip():
        raise Problem(422, "bad_bank", "use a short word without a slash", field)


def _hub(service: Service, counts: HubCounts, number: int, paths: dict[str, str]) -> HubModel:
    content = counts.contents[number]
    info = service.store.info(content)
    return HubModel(
        content=content,
        kind=info.kind if info else "video",
        name=display_name(paths.get(content, content), service.uploaded),
        thumb=thumb_url(content, info.duration / 2 if info else 0.0),
        count_before=int(counts.before[number]),
        count_after=int(counts.after[number]),
    )
