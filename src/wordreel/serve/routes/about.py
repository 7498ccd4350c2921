"""The status of the server: library, health, metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response

from wordreel import __version__
from wordreel.catalogue.listing import count_videos
from wordreel.catalogue.passes import quick_contents
from wordreel.search.query_fields import SEARCHABLE
from wordreel.serve.display import display_path, largest_folders
from wordreel.serve.metrics import CONTENT_TYPE
from wordreel.serve.routes import Served, errors
from wordreel.serve.routes.banks import listed
from wordreel.serve.schemas_library import ModelSummary, OkResponse, StatusResponse
from wordreel.serve.service import Service

router = APIRouter(tags=["about"])


@router.get("/api/status", response_model=StatusResponse, responses=errors())
async def status(service: Served) -> StatusResponse:
    """Numbers about the library, and what this server allows."""
    return await service.search_pool(_status, service)


@router.get("/healthz", response_model=OkResponse)
async def health() -> OkResponse:
    """Whether the server is up."""
    return OkResponse()


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(service: Served) -> Response:
    """Counters and histograms for Prometheus."""
    text = await service.search_pool(service.metrics_text)
    return Response(text, headers={"content-type": CONTENT_TYPE})


def _status(service: Service) -> StatusResponse:
    state, options = service.live.now, service.options
    videos, seconds = count_videos(service.store)
    library = str(service.store.path)
    paths = state.searcher.snapshot.paths
    return StatusResponse(
        version=__version__,
        library=display_path(library),
        read_only=options.read_only,
        model=ModelSummary(
            name=service.model.name,
            fingerprint=service.model.fingerprint,
            experts=list(service.model.experts),
        ),
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
