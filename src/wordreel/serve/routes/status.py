"""The server itself: its status, health and metrics, the models that it can answer with, and logging in."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from wordreel import __version__
from wordreel.catalogue.files import count_videos
from wordreel.catalogue.passes import quick_contents
from wordreel.embed.model_choices import ModelChoice, model_choices
from wordreel.search.query_fields import SEARCHABLE
from wordreel.serve.display import display_path, largest_folders
from wordreel.serve.metrics import CONTENT_TYPE
from wordreel.serve.problems import Problem
from wordreel.serve.routes import Served
from wordreel.serve.routes.banks import BankModel, listed
from wordreel.serve.schemas import JobResponse, OkResponse, RequestModel
from wordreel.serve.tokens import COOKIE, SESSION_SECONDS, TokenVerifier

router = APIRouter(tags=["server"])


class ModelSummary(BaseModel):
    """The model that answers."""

    name: str
    fingerprint: str
    experts: list[str]


class StatusResponse(BaseModel):
    """The state of the server and its library."""

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


class ModelsResponse(BaseModel):
    """Every model that can answer."""

    models: list[ModelChoice]


class UseRequest(RequestModel):
    """A model to switch to."""

    model: str = Field(min_length=1, max_length=200, examples=["clip-vit-b-32"])
    download: bool = Field(False, description="agree to the download of a backbone that is not here")


class LoginRequest(RequestModel):
    """The token of the server."""

    token: str = Field(min_length=1, max_length=1000)


@router.get("/api/status")
def status(service: Served) -> StatusResponse:
    """Return numbers about the library, and what this server allows."""
    state, options, model = service.live.now, service.options, service.model
    videos, seconds = count_videos(service.store)
    library = str(service.store.path)
    paths = state.searcher.snapshot.paths
    return StatusResponse(
        version=__version__,
        library=display_path(library),
        read_only=options.read_only,
        model=ModelSummary(name=model.name, fingerprint=model.fingerprint, experts=list(model.experts)),
        videos=videos,
        quick=len(quick_contents(service.store.catalogue)),
        clips=len(state.searcher),
        unembedded=state.missing,
        index=str(state.searcher.snapshot.opened_index),
        problem=service.search_problem(),
        experts=state.cached(("experts",), lambda: sorted(service.store.track_dims())),
        folders=state.cached(("folders",), lambda: largest_folders(paths().values(), library)),
        seconds=seconds,
        banks=listed(service),
        jobs_running=service.jobs.waiting(),
        login="none" if options.token is None else "token",
        roots=[display_path(str(root)) for root in options.roots],
        norms=["auto", *SEARCHABLE],
        max_upload=options.max_upload,
        log_queries=service.query_log.on,
    )


@router.get("/healthz")
async def health() -> OkResponse:
    """Tell that the server is up."""
    return OkResponse()


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(service: Served) -> Response:
    """Return counters and histograms for Prometheus."""
    return Response(service.metrics_text(), headers={"content-type": CONTENT_TYPE})


@router.post("/api/login")
def login(body: LoginRequest, service: Served, request: Request, response: Response) -> OkResponse:
    """Log in with the server's token."""
    verifier: TokenVerifier | None = request.app.state.verifier
    if verifier is None:
        return OkResponse()
    if not verifier.verify(body.token):
        raise Problem(401, "wrong_token", "that is not the token of this server", "token")
    response.set_cookie(
        COOKIE,
        service.sessions.open(),
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https" or request.headers.get("origin", "").startswith("https:"),
        path="/",
    )
    return OkResponse()


@router.post("/api/logout")
def logout(service: Served, request: Request, response: Response) -> OkResponse:
    """End this session."""
    service.sessions.close(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return OkResponse()


@router.get("/api/models")
def models(service: Served) -> ModelsResponse:
    """List the models of this library and backbones to download: `download` bytes, 0 if here."""
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
