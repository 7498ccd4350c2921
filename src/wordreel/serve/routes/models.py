"""The models that can answer searches, and the job that switches to one."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter

from wordreel.embed.model_choices import ModelChoice, model_choices
from wordreel.serve.problems import Problem
from wordreel.serve.routes import Served, errors
from wordreel.serve.routes.jobs import job_model
from wordreel.serve.schemas import JobResponse
from wordreel.serve.schemas_library import ModelModel, ModelsResponse, UseRequest
from wordreel.serve.service import Service

router = APIRouter(tags=["models"])


@router.get("/api/models", response_model=ModelsResponse, responses=errors())
async def models(service: Served) -> ModelsResponse:
    """The models of this library and the backbones that can be downloaded."""
    return ModelsResponse(
        models=[ModelModel(**asdict(one)) for one in await asyncio.to_thread(_choices, service)]
    )


@router.post("/api/models", status_code=202, response_model=JobResponse, responses=errors(404, 409))
async def use(body: UseRequest, service: Served) -> JobResponse:
    """Switch to a model that GET /api/models lists. Searches go on with the old one until it is ready."""
    choices = {one.key: one for one in await asyncio.to_thread(_choices, service)}
    chosen = choices.get(body.model)
    if chosen is None:  # a path or a hub id is the owner's to give, on the command line
        raise Problem(404, "no_model", "there is no such model", "model")
    if chosen.download and not body.download:
        raise Problem(
            409,
            "needs_download",
            f"{chosen.name} is not on the server's machine: {chosen.download / 1e6:.0f} MB would be "
            f"downloaded (licence: {chosen.licence}); agree to the download first",
            "download",
        )
    request = {"model": chosen.key, "download": body.download}
    job = await asyncio.to_thread(service.jobs.put, "use", f"Switching to {chosen.name}", request)
    return JobResponse(job=job_model(job))


def _choices(service: Service) -> list[ModelChoice]:
    return model_choices(service.store, service.library.weights)
