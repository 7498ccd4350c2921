"""Everything that the routes share: one `Service` for each server."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any

from wordreel.api import Library
from wordreel.banks.search_index import index_is_stale
from wordreel.errors import WordreelError
from wordreel.experts.faces import load as load_faces
from wordreel.library.jobs import DONE, THOROUGH, Job, unfinished_jobs
from wordreel.library.passes import note_returned, waiting_files
from wordreel.library.uploads import upload_names
from wordreel.media import Fence
from wordreel.models.base import Model
from wordreel.runtime.sessions import accelerated
from wordreel.search.embedding import embedding_cache
from wordreel.search.searcher import AnalyseFile
from wordreel.search.video_query import FileAnalyser
from wordreel.serve.access.sessions import Sessions
from wordreel.serve.answer_cache import AnswerCache
from wordreel.serve.bounded_executor import BoundedExecutor
from wordreel.serve.current_model import CurrentModel
from wordreel.serve.disk_cache import DiskCache
from wordreel.serve.face_crops import FaceCrops
from wordreel.serve.jobs.process import JobProcess
from wordreel.serve.jobs.queue import JobQueue, JobRunner
from wordreel.serve.live import LiveSearcher
from wordreel.serve.metrics import Metrics
from wordreel.serve.options import Options
from wordreel.serve.problems import Problem, page_message
from wordreel.serve.query_log import QueryLog
from wordreel.serve.search_workers import SearchWorkers
from wordreel.serve.thumbnails import Thumbnails
from wordreel.serve.track_cache import TrackCache
from wordreel.serve.uploads import Uploads
from wordreel.serve.verified_files import VerifiedFiles
from wordreel.serve.worker_demand import WorkerDemand, most_workers
from wordreel.util.cores import cores

log = logging.getLogger("wordreel.serve")

THUMBNAIL_BYTES = 512 * 2**20  # on disk
WATCH_EVERY = 2.0  # seconds
REOPEN_EVERY = 15.0  # seconds, while a job or another program writes


class Service:
    """One library, served."""

    def __init__(
        self,
        library: Library,
        options: Options,
        *,
        job_runner: JobRunner | None = None,
        fence: Any = None,
        analyse: AnalyseFile | None = None,
    ) -> None:
        self.library, self.options = library, options
        self.store = library.store
        self.store.load_track = TrackCache(self.store.load_track)
        self.current_model = CurrentModel(library.store, library.weights, library.model)
        self.metrics = Metrics()
        self.sessions = Sessions()
        self.fence = fence or Fence()
        analyse = analyse or FileAnalyser(self.store, library.weights, self.fence)
        self.live = LiveSearcher(
            self.store, self.current_model, analyse, options.read_only, library.index_server
        )
        self.answers = AnswerCache()
        self.workers = self._search_workers()
        self.thumbnails = Thumbnails(self.fence, DiskCache(self.store.cache / "thumbs", THUMBNAIL_BYTES))
        self.face_crops = FaceCrops(self.fence, lambda: load_faces(library.weights))
        self.files = VerifiedFiles(self.store, options.roots)
        self.uploads = Uploads(self.store, self.fence, options.read_only)
        self.jobs = JobQueue(
            self.store, job_runner or JobProcess(self.store.path), self._job_progress, self._job_ended
        )
        self.query_log = QueryLog(self.store)
        # One pool for each kind of work: playback and search never wait for thumbnails.
        threads = max(2, cores(), options.workers or 1)
        self.search_pool = BoundedExecutor("search", threads, options.timeout, self._follow_load)
        self.media_pool = BoundedExecutor("media", 4, options.timeout)
        self.thumbnail_pool = BoundedExecutor("thumbnail", max(2, cores()), 2 * options.timeout)
        self.analysis_pool = BoundedExecutor("analysis", max(2, cores()), 2 * options.timeout)
        self.clip_pool = BoundedExecutor("clip", 2, 10 * options.timeout)
        self.uploaded = upload_names(self.store)
        self.listeners = 0  # to the progress of jobs
        self._watching: asyncio.Task[None] | None = None
        self._returned: frozenset[str] = frozenset()  # waiting for the thorough pass, and not yet noted
        self.metrics.jobs_waiting.set_function(lambda: self.jobs.waiting())
        self.metrics.items.set_function(lambda: len(self.live.now.searcher))

    @property
    def model(self) -> Model:
        """The model of the searches that begin now."""
        return self.live.now.searcher.model

    async def start(self) -> None:
        """Take up unfinished jobs, embed what is not embedded, and watch for changes from outside."""
        if not self.options.read_only:
            self.uploads.sweep()
            self.jobs.start()
            unfinished = {job.kind for job in unfinished_jobs(self.store)}
            missing = embedding_cache(self.store, self.model).missing()
            if not unfinished - {THOROUGH} and (missing or index_is_stale(self.store, self.model)):
                self.jobs.put("embed", "Preparing files added before", {})
            if THOROUGH not in unfinished and waiting_files(self.store.catalogue):
                self.jobs.put(THOROUGH, "A closer look at files added before", {"paths": []})
        if self.workers is not None:
            self.workers.refresh(self.live.now.version)
            self.workers.resize(self.options.workers or 0)
        self._watching = asyncio.create_task(self._watch())

    def _search_workers(self) -> SearchWorkers | None:
        """None where this process alone searches: as it was told, or because there is one core, or a vector
        server or a GPU does the work, which processes would only share."""
        self._demand: WorkerDemand | None = None
        if self.options.workers == 1:
            return None
        if self.options.workers is None:
            most = most_workers()
            if most == 1 or accelerated() or self.library.index_server() is not None:
                return None
            self._demand = WorkerDemand(most)
        workers = SearchWorkers(
            self.store.path, self.library.weights.root, self.options.read_only, self.options.timeout
        )
        self.live.on_change = lambda state: workers.refresh(state.version)
        return workers

    def _follow_load(self, searches: int) -> None:
        """Start workers in a burst of searches, and stop them when it is over."""
        if self._demand is not None and self.workers is not None:
            self.workers.resize(self._demand.wanted(searches))

    def search_problem(self) -> str | None:
        """Why searches find nothing, or not every video; None where they find every video."""
        now = self.live.now
        if now.problem is not None:
            return now.problem.message if isinstance(now.problem, Problem) else page_message(now.problem)
        if self.current_model.problem:
            return page_message(self.current_model.problem)
        if now.outdated is not None:
            return page_message(now.outdated)
        return self.live.not_embedded(now.searcher, now.missing).message if now.missing else None

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        if self.workers is not None:
            await asyncio.to_thread(self.workers.close)
        await asyncio.to_thread(self.jobs.close)
        if self.query_log.on:
            with suppress(WordreelError):
                await asyncio.to_thread(self.query_log.flush)
        self.uploads.close()
        pools = (self.search_pool, self.media_pool, self.thumbnail_pool, self.analysis_pool, self.clip_pool)
        for pool in pools:
            pool.close()
        self.fence.close()

    def reopen(self) -> None:
        """Let searches see the library as it is now."""
        self.uploaded = upload_names(self.store)
        self.live.reopen()

    def _job_progress(self, job: Job) -> None:
        if time.monotonic() - self.live.opened_at > REOPEN_EVERY and self.live.changed():
            self.reopen()

    def _job_ended(self, job: Job) -> None:
        self.metrics.jobs.labels(job.kind, job.state).inc()
        if job.kind == "add" and job.state == DONE and waiting_files(self.store.catalogue):
            self.jobs.put(THOROUGH, f"A closer look: {job.title}", job.request)
        if job.kind in ("add", THOROUGH, "embed", "use"):
            self.reopen()
        elif job.state == DONE:
            self.live.banks_changed()

    def note_returned(self, waiting: frozenset[str]) -> None:
        """Remember which videos searches returned that wait for the thorough pass; saved now and then."""
        if not self.options.read_only:
            self._returned |= waiting

    def _save_returned(self) -> None:
        returned, self._returned = self._returned, frozenset()
        if returned:
            note_returned(self.store, returned)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY)
            self._follow_load(self.search_pool.load)
            try:
                idle = time.monotonic() - self.live.opened_at > REOPEN_EVERY
                if idle and await asyncio.to_thread(self.live.changed):
                    await asyncio.to_thread(self.reopen)
                await asyncio.to_thread(self._save_returned)
                new = 0 if self.options.read_only else await asyncio.to_thread(self.query_log.flush)
                if new:
                    self.live.banks_changed()
            except WordreelError as error:
                log.warning("looking after the library: %s", error)
