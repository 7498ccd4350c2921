"""Everything that the routes share: one `Service` for each server."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from wordreel.banks.search_index import index_is_stale
from wordreel.catalogue.jobs import DONE, THOROUGH, Job, last_ended_job, unfinished_jobs
from wordreel.catalogue.passes import waiting_files
from wordreel.catalogue.uploads import upload_names
from wordreel.embed.embed_library import embedding_cache
from wordreel.errors import WordreelError
from wordreel.experts.faces import load as load_faces
from wordreel.library import Library
from wordreel.media import Fence
from wordreel.models.base import Model
from wordreel.search.searcher import AnalyseFile
from wordreel.search.video_query import FileAnalyser
from wordreel.serve.access.sessions import Sessions
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
from wordreel.serve.scratch import JobSignals, make_scratch
from wordreel.serve.thumbnails import Thumbnails
from wordreel.serve.track_cache import TrackCache
from wordreel.serve.uploads import Uploads
from wordreel.serve.verified_files import VerifiedFiles
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
        self._own_scratch = make_scratch() if options.scratch is None else None
        scratch = options.scratch or Path(self._own_scratch.name)  # type: ignore[union-attr]
        self.metrics = Metrics()
        self.sessions = Sessions(scratch / "sessions")
        self.fence = fence or Fence()
        analyse = analyse or FileAnalyser(self.store, library.weights, self.fence)
        self.live = LiveSearcher(
            self.store, self.current_model, analyse, options.read_only, library.index_server
        )
        library.search_with(
            lambda: self.live.now.check(), lambda: self.model, note_hits=not options.read_only
        )
        self.thumbnails = Thumbnails(self.fence, DiskCache(self.store.cache / "thumbs", THUMBNAIL_BYTES))
        self.face_crops = FaceCrops(self.fence, lambda: load_faces(library.weights))
        self.files = VerifiedFiles(self.store, options.roots)
        self.uploads = Uploads(self.store, self.fence, scratch if options.read_only else None)
        self.jobs = JobQueue(
            self.store,
            job_runner or JobProcess(self.store.path),
            JobSignals(scratch),
            self._job_progress,
            self._job_ended,
        )
        self.query_log = QueryLog(self.store)
        # One pool for each kind of work: playback and search never wait for thumbnails.
        self.search_pool = BoundedExecutor("search", max(2, cores()), options.timeout)
        self.media_pool = BoundedExecutor("media", 4, options.timeout)
        self.thumbnail_pool = BoundedExecutor("thumbnail", max(2, cores()), 2 * options.timeout)
        self.analysis_pool = BoundedExecutor("analysis", max(2, cores()), 2 * options.timeout)
        self.clip_pool = BoundedExecutor("clip", 2, 10 * options.timeout)
        self.uploaded = upload_names(self.store)
        self.listeners = 0  # to the progress of jobs
        self._watching: asyncio.Task[None] | None = None
        self._job_seen: int | None = None  # the latest job that ended

    def metrics_text(self) -> bytes:
        """All metrics, of every process of the server."""
        return self.metrics.text(self.jobs.waiting(), len(self.live.now.searcher))

    @property
    def model(self) -> Model:
        """The model of the searches that begin now."""
        return self.live.now.searcher.model

    async def start(self) -> None:
        """Take up unfinished jobs, embed what is not embedded, and watch for changes from outside."""
        if not self.options.read_only:
            self.uploads.sweep()
            with self.jobs.signals.starting():  # one process at a time: each job is put once
                self._put_unfinished()
            self.jobs.start()
        self._watching = asyncio.create_task(self._watch())

    def _put_unfinished(self) -> None:
        unfinished = {job.kind for job in unfinished_jobs(self.store)}
        missing = embedding_cache(self.store, self.model).missing()
        if not unfinished - {THOROUGH} and (missing or index_is_stale(self.store, self.model)):
            self.jobs.put("embed", "Preparing files added before", {})
        if THOROUGH not in unfinished and waiting_files(self.store.catalogue):
            self.jobs.put(THOROUGH, "A closer look at files added before", {"paths": []})

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
        await asyncio.to_thread(self.jobs.close)
        if self.query_log.on:
            with suppress(WordreelError):
                await asyncio.to_thread(self.query_log.flush)
        pools = (self.search_pool, self.media_pool, self.thumbnail_pool, self.analysis_pool, self.clip_pool)
        for pool in pools:
            pool.close()
        self.fence.close()
        if self._own_scratch is not None:
            self._own_scratch.cleanup()

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

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY)
            try:
                job = await asyncio.to_thread(last_ended_job, self.store)
                due = time.monotonic() - self.live.opened_at > REOPEN_EVERY or job != self._job_seen
                self._job_seen = job
                if due and await asyncio.to_thread(self.live.changed):
                    await asyncio.to_thread(self.reopen)
                new = 0 if self.options.read_only else await asyncio.to_thread(self.query_log.flush)
                if new:
                    self.live.banks_changed()
            except WordreelError as error:
                log.warning("looking after the library: %s", error)
