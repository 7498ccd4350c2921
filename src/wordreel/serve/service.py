"""Everything that the routes share: one `Service` for each server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from wordreel.banks.search_index import index_is_stale
from wordreel.catalogue.jobs import DONE, THOROUGH, Job, last_ended_job, unfinished_jobs, upload_names
from wordreel.catalogue.passes import waiting_files
from wordreel.catalogue.records import Video
from wordreel.embed.embed_library import embedding_cache
from wordreel.errors import WordreelError
from wordreel.experts.faces import SFaceExpert
from wordreel.library import Library
from wordreel.media import Fence
from wordreel.media.types import MediaInfo
from wordreel.models.base import Model
from wordreel.search.searcher import AnalyseFile
from wordreel.search.video_query import FileAnalyser
from wordreel.serve.jobs.job_process import JobProcess
from wordreel.serve.jobs.queue import JobQueue, JobRunner
from wordreel.serve.jobs.watched import WatchedFolders
from wordreel.serve.live import CurrentModel, LiveSearcher
from wordreel.serve.media_files import VerifiedFiles
from wordreel.serve.metrics import Metrics
from wordreel.serve.options import Options
from wordreel.serve.problems import Problem, page_message
from wordreel.serve.query_log import QueryLog
from wordreel.serve.scratch import JobSignals, make_scratch
from wordreel.serve.thumbnails import DiskCache, FaceCrops, Thumbnails
from wordreel.serve.tokens import Sessions
from wordreel.serve.uploads import Uploads
from wordreel.types import Track
from wordreel.util.lru_cache import LRUCache
from wordreel.util.machine import cores

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("wordreel.serve")

THUMBNAIL_BYTES = 512 * 2**20  # on disk
WATCH_EVERY = 2.0  # seconds
REOPEN_EVERY = 15.0  # seconds, while a job or another program writes
TRACK_BYTES = 256 * 2**20  # in memory: every hit is explained from its tracks
MAX_WAITING = 256  # requests for one pool; more are refused
POOLS = {"search": (0, 1), "media": (4, 1), "thumbnail": (0, 2), "analysis": (0, 2), "clip": (2, 10)}
"""Threads of each pool, 0 for as many as there are cores; how many times longer than a search it may take."""


class BoundedExecutor:
    """A thread pool with a bound on how many calls may wait for it, and for how long."""

    def __init__(self, name: str, threads: int, timeout: float) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._timeout, self._calls = timeout, 0

    async def __call__(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread; raise a `Problem` where too many wait or it takes too long."""
        if self._calls >= MAX_WAITING:
            raise Problem(
                503, "too_busy", "too many requests at once; try again", headers={"retry-after": "1"}
            )
        self._calls += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, lambda: work(*args, **kwargs)
                )
        except TimeoutError:
            raise Problem(
                503,
                "too_slow",
                "this took too long; ask for less, or try again",
                headers={"retry-after": "5"},
            ) from None
        finally:
            self._calls -= 1

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


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
        self.store.load_track = cached_tracks(self.store.load_track)
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
        self.face_crops = FaceCrops(self.fence, lambda: SFaceExpert(library.weights))
        self.files = VerifiedFiles(self.store, options.roots)
        self.uploads = Uploads(self.store, self.fence, scratch if options.read_only else None)
        self.jobs = JobQueue(
            self.store,
            job_runner or JobProcess(self.store.path),
            JobSignals(scratch),
            self._job_progress,
            self._job_ended,
        )
        self.watched = WatchedFolders(self.store, self.jobs, options.roots, scratch)
        self.query_log = QueryLog(self.store)
        self.pools = {  # one for each kind of work: playback and search never wait for thumbnails
            name: BoundedExecutor(name, threads or max(2, cores()), times * options.timeout)
            for name, (threads, times) in POOLS.items()
        }
        self.uploaded = upload_names(self.store)
        self.listeners = 0  # to the progress of jobs
        self._watching: asyncio.Task[None] | None = None
        self._job_seen: int | None = None  # the latest job that ended

    def metrics_text(self) -> bytes:
        """Return all metrics, of every process of the server."""
        return self.metrics.text(self.jobs.waiting(), len(self.live.now.searcher))

    @property
    def model(self) -> Model:
        """The model of the searches that begin now."""
        return self.live.now.searcher.model

    def video(self, content: str) -> Video:
        """Return a video of the library with its paths; raise a `Problem` where there is none (any more)."""
        video = self.store.video(content)
        if video is None or not video.paths:
            raise unknown_file()
        return video

    def info(self, content: str) -> MediaInfo:
        """Return what a file is; raise a `Problem` where the library does not know it (any more)."""
        info = self.store.info(content)
        if info is None:
            raise unknown_file()
        return info

    def check_stored(self, content: str) -> None:
        """Raise a `Problem` where the library has no clips of a file (any more)."""
        if not self.store.clips(content):
            raise unknown_file()

    async def start(self) -> None:
        """Take up unfinished jobs, embed what is not embedded, and watch for changes from outside."""
        if not self.options.read_only:
            self.uploads.sweep()
            with self.jobs.signals.starting():  # one process at a time: each job is put once
                self._put_unfinished()
            self.jobs.start()
            self.watched.start()
        self.loop = asyncio.get_running_loop()
        self._watching = asyncio.create_task(self._watch())

    def _put_unfinished(self) -> None:
        unfinished = {job.kind for job in unfinished_jobs(self.store)}
        missing = embedding_cache(self.store, self.model).missing()
        if not unfinished - {THOROUGH} and (missing or index_is_stale(self.store, self.model)):
            self.jobs.put("embed", "Preparing files added before", {})
        if THOROUGH not in unfinished and waiting_files(self.store.catalogue):
            self.jobs.put(THOROUGH, "A closer look at files added before", {"paths": []})

    def search_problem(self) -> str | None:
        """Say why searches find nothing, or not every video; None where they find every video."""
        now = self.live.now
        if now.problem is not None:
            return now.problem.message if isinstance(now.problem, Problem) else page_message(now.problem)
        if self.current_model.problem:
            return page_message(self.current_model.problem)
        if now.outdated is not None:
            return page_message(now.outdated)
        return self.live.not_embedded(now.searcher, now.missing).message if now.missing else None

    async def stop(self) -> None:
        """Stop the running job and end everything."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        self.watched.close()
        await asyncio.to_thread(self.jobs.close)
        if self.query_log.on:
            with suppress(WordreelError):
                await asyncio.to_thread(self.query_log.flush)
        for pool in self.pools.values():
            pool.close()
        self.fence.close()
        if self._own_scratch is not None:
            self._own_scratch.cleanup()

    def reopen(self) -> None:
        """Let searches see the library as it is now."""
        self.uploaded = upload_names(self.store)
        self.live.reopen()

    def _job_progress(self) -> None:
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


def cached_tracks(load: Callable[[str], Track], max_bytes: int = TRACK_BYTES) -> Callable[[str], Track]:
    """Return `load` with a cache. Tracks are named by their hash, so a cached one never goes stale."""
    cached = LRUCache[str, Track](max_bytes, lambda track: track.values.nbytes)

    def load_cached(digest: str) -> Track:
        track = cached.get(digest)
        if track is None:
            track = load(digest)
            cached.put(digest, track)
        return track

    return load_cached


def unknown_file() -> Problem:
    """Return the answer about a file that the library does not have."""
    return Problem(404, "not_found", "there is no such file in the library (any more)")
