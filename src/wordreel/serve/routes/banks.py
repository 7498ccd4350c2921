"""Query banks, the log of queries, and what hubs there are."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.catalogue import banks as bank_store
from wordreel.serve.display import display_name, thumb_url
from wordreel.serve.k_occurrence import HubCounts, best_of, count_occurrences
from wordreel.serve.problems import Problem
from wordreel.serve.routes import Served, errors
from wordreel.serve.routes.jobs import job_model
from wordreel.serve.schemas import BankName, JobResponse, NormName
from wordreel.serve.schemas_library import (
    BankCheckModel,
    BankCheckRequest,
    BankModel,
    BankRequest,
    BanksResponse,
    HubModel,
    HubnessMeasures,
    HubnessResponse,
    OkResponse,
    SettingsModel,
)
from wordreel.serve.service import Service

router = APIRouter(tags=["banks"])

Named = Annotated[str, Path(min_length=1, max_length=100)]
NOTE = "counted over the sample queries themselves; a check measures on others"
WORSE = "this ranking finds the same files even more often than similarity alone: better leave it out"


@router.get("/api/banks", response_model=BanksResponse, responses=errors())
async def banks(service: Served) -> BanksResponse:
    """Every bank, and what its last check with the library's model said."""
    return BanksResponse(banks=await service.search_pool(listed, service))


@router.post("/api/banks", status_code=202, response_model=JobResponse, responses=errors(409))
async def build(body: BankRequest, service: Served) -> JobResponse:
    """Make a bank."""
    if any(row.name == body.name for row in await asyncio.to_thread(bank_store.list_banks, service.store)):
        raise Problem(
            409, "bank_exists", "there are such sample queries already; choose another name", "name"
        )
    if not body.name.isprintable() or "/" in body.name or not body.name.strip():
        raise Problem(422, "bad_bank", "use a short word without a slash", "name")
    source: Any = body.source if isinstance(body.source, str) else body.source.model_dump()
    job = await asyncio.to_thread(service.jobs.put, "bank", body.name, {"name": body.name, "source": source})
    return JobResponse(job=job_model(job))


@router.post(
    "/api/banks/{name}/check", status_code=202, response_model=JobResponse, responses=errors(404, 409)
)
async def check(name: Named, body: BankCheckRequest, service: Served) -> JobResponse:
    """Measure whether a bank helps, on captions of videos in the library."""
    await asyncio.to_thread(_check_bank, service, name)
    job = await asyncio.to_thread(service.jobs.put, "check", name, {"bank": name, "captions": body.captions})
    return JobResponse(job=job_model(job))


@router.delete("/api/banks/{name}", response_model=OkResponse, responses=errors(404, 409))
async def forget(name: Named, service: Served) -> OkResponse:
    """Forget a bank."""
    await asyncio.to_thread(_check_bank, service, name)
    await asyncio.to_thread(service.library.banks.delete, name)
    service.live.banks_changed()
    return OkResponse()


@router.get("/api/settings", response_model=SettingsModel, responses=errors())
async def settings(service: Served) -> SettingsModel:
    """Whether queries are put into a bank, and into which."""
    return SettingsModel(log_queries=service.query_log.on, log_bank=service.query_log.bank)


@router.put("/api/settings", response_model=SettingsModel, responses=errors(409))
async def set_settings(body: SettingsModel, service: Served) -> SettingsModel:
    """Turn the log of queries on or off."""
    if not body.log_bank.isprintable() or "/" in body.log_bank or not body.log_bank.strip():
        raise Problem(422, "bad_bank", "use a short word without a slash", "log_bank")
    await asyncio.to_thread(service.query_log.set, body.log_queries, body.log_bank)
    return SettingsModel(log_queries=service.query_log.on, log_bank=service.query_log.bank)


@router.get("/api/hubness", response_model=HubnessResponse, responses=errors(404, 409))
async def hubness(
    service: Served,
    bank: Annotated[BankName | None, Query()] = None,
    norm: Annotated[NormName, Query()] = "dis",
) -> HubnessResponse:
    """How often videos are among the best of a bank's queries, before and after a normalisation."""
    return await service.analysis_pool(_hubness, service, bank, norm)


def listed(service: Service) -> list[BankModel]:
    """The banks as they go over the wire."""
    entries = []
    for row in bank_store.list_banks(service.store):
        check = bank_store.read_check(service.store, row.name, service.model.fingerprint)
        checked = None
        if check is not None:
            checked = BankCheckModel(
                passed=check.passed,
                verdict=str(check.report.get("verdict", "")),
                method=str(check.report.get("method", "")),
                checked_at=check.checked_at,
                current=check.revision == bank_store.read_bank(service.store, row.name).revision,
            )
        entries.append(
            BankModel(name=row.name, source=row.source, made_at=row.made_at, size=row.size, checked=checked)
        )
    return entries


def _check_bank(service: Service, name: str) -> None:
    if all(row.name != name for row in bank_store.list_banks(service.store)):
        raise Problem(404, "not_found", "there are no sample queries of that name")


def _hubness(service: Service, bank: str | None, norm: str) -> HubnessResponse:
    state = service.live.now
    rows = bank_store.list_banks(service.store)
    if not rows or not len(state.searcher):
        raise Problem(409, "no_bank", "there are no sample queries to count with; add some first")
    name = bank or max(rows, key=lambda row: (row.size, row.name)).name
    _check_bank(service, name)
    scoring = state.check().scoring(norm, name)
    work = EmbeddedBank.open(state.searcher, bank_store.read_bank(service.store, name))
    counts = state.cached(
        ("hubness", name, norm, work.bank.revision), lambda: count_occurrences(work, scoring.norm)
    )
    paths = state.searcher.snapshot.paths()
    return HubnessResponse(
        bank=name,
        queries=len(work.bank),
        videos=len(counts.contents),
        k=best_of(len(counts.contents)),
        norm=scoring.norm.label,
        note=NOTE if counts.measures[1]["skewness"] <= counts.measures[0]["skewness"] else f"{NOTE}; {WORSE}",
        edges=list(counts.edges),
        before=_measures(counts, 0),
        after=_measures(counts, 1),
        hubs=[_hub(service, counts, number, paths) for number in counts.hubs()],
    )


def _measures(counts: HubCounts, which: int) -> HubnessMeasures:
    wanted = {
        name: counts.measures[which][name] for name in HubnessMeasures.model_fields if name != "histogram"
    }
    return HubnessMeasures(**wanted, histogram=list(counts.histograms[which]))


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
