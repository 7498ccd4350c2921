"""The models that can answer searches, and the job that switches to one."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from wordreel.embed.model_choices import ModelChoice, model_choices
from wordreel.serve.problems import Problem
from wordreel.serve.routes import Served
from wordreel.serve.schemas import JobResponse, RequestModel

router = APIRouter(tags=["models"])


class ModelsResponse(BaseModel):
    models: list[ModelChoice]


class UseRequest(RequestModel):
    model: str = Field(min_length=1, max_length=200, examples=["clip-vit-b-32"])
    download: bool = Field(False, description="agree to the download of a backbone that is not here")


@router.get("/api/models")
def models(service: Served) -> ModelsResponse:
    """The models of this library and the backbones that can be downloaded: `download` bytes, 0 if here."""
    return ModelsResponse(models=model_choices(service.store, service.library.weights))


@router.post("/api/models", status_code=202)
def use(body: UseRequest, service: Served) -> JobResponse:
    """Switch to a model that GET /api/models lists. Searches go on with the old one until it is ready."""
    choices = {choice.key: choice for choice in models(service).models}
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
    return JobResponse.of(service.jobs.put("use", f"Switching to {chosen.name}", request))
