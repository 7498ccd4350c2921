"""Add files to a library: plan, process files in worker threads, record results in one writer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from wordreel.catalogue.passes import PASSES, Pass
from wordreel.catalogue.paths import canonical_path
from wordreel.catalogue.remove import drop_unreferenced
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, NextStep, WordreelError
from wordreel.experts import registry
from wordreel.experts.base import Expert
from wordreel.ingest.add_report import AddProgressCallback, AddReport
from wordreel.ingest.extract import Extractor, LocalExtractor, MediaDecoder
from wordreel.ingest.plan import AddPlanner
from wordreel.ingest.quick import QuickExperts, QuickExtractor
from wordreel.ingest.record_file import remove_lost_failures
from wordreel.ingest.run import AddRun
from wordreel.ingest.tasks import AddOptions
from wordreel.ingest.worker_extractor import ClusterExtractor, ExtractSetup, LoadFrom
from wordreel.media import Fence
from wordreel.runtime.sessions import shared_by
from wordreel.runtime.store import WeightStore
from wordreel.util.machine import cores
from wordreel.workers.executor import Executor

DEFAULTS = AddOptions()


def add(
    store: LibraryStore,
    paths: Sequence[str | os.PathLike[str]],
    experts: Sequence[Expert],
    decoder: MediaDecoder,
    jobs: int | None = None,
    on_progress: AddProgressCallback | None = None,
    retry_failed: bool = False,
    within: Sequence[str | os.PathLike[str]] | None = None,
    keep_clips: bool = False,
) -> AddReport:
    """Bring the library up to date with files and folders.

    Every file is one transaction, so an interrupted or killed run resumes with the same call. Unchanged
    files are not read. Files that are gone are reported, not removed.

    Args:
        store: The library to add to.
        paths: Files and folders; folders are walked recursively.
        experts: Loaded experts to run on every file.
        decoder: Decodes the files, usually a `wordreel.media.Fence`.
        jobs: Files processed at once; `default_jobs()` if None.
        on_progress: Called with an `AddProgress` whenever a file starts, advances or ends.
        retry_failed: Also process unchanged files that failed before.
        within: Refuse files whose real path, links resolved, is in none of these folders.
        keep_clips: Leave the clips of known contents as they are, and with them their embeddings. For experts
            that no embedding reads yet; otherwise new tracks cut new clips, which are embedded again.

    Returns:
        What was added, changed, moved, skipped and what failed.

    Raises:
        LibraryBusy: Another process is writing to the library.
        LibraryError: The disk is full or the catalogue is damaged.
        WeightsError: An expert's weights are missing or damaged.

    >>> import cv2, numpy, tempfile
    >>> from pathlib import Path
    >>> from wordreel.experts.shots import ShotsExpert
    >>> from wordreel.media import Fence
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = cv2.imwrite(str(folder / "black.png"), numpy.zeros((20, 30, 3), numpy.uint8))
    >>> with LibraryStore.create_or_open(folder / "library") as store, Fence() as fence:
    ...     report = add(store, [folder], [ShotsExpert()], fence)
    >>> len(report.added), report.failed
    (1, [])
    """
    extractor = LocalExtractor(experts, decoder, store.track_files)
    options = AddOptions(retry_failed, within, keep_clips)
    return add_with(extractor, store, paths, jobs or default_jobs(), on_progress, options)


def add_with(
    extractor: Extractor,
    store: LibraryStore,
    paths: Sequence[str | os.PathLike[str]],
    jobs: int,
    on_progress: AddProgressCallback | None = None,
    options: AddOptions = DEFAULTS,
) -> AddReport:
    """Do as `add` does, wherever the extractor works; only this process writes to the catalogue."""
    started = time.monotonic()
    report = AddReport()
    roots = _possible(paths, report)
    with store.writing():
        planner = AddPlanner(store.catalogue, extractor.fingerprints, options, report)
        tasks = planner.plan(roots, str(store.path))
        remove_lost_failures(store, roots)
        store.track_files.clear_staging()
        if tasks:
            run = AddRun(store, tasks, extractor, report, on_progress, started, options)
            run.run(max(1, min(jobs, len(tasks))))
        drop_unreferenced(store.catalogue, store.track_files)
    report.seconds = time.monotonic() - started
    return report


def default_jobs() -> int:
    """Return as many jobs as there are cores, at most eight.

    The experts of each file work while it is decoded.
    """
    return min(8, cores())


def _possible(paths: Sequence[str | os.PathLike[str]], report: AddReport) -> list[str]:
    """Return the paths in their one spelling; a name that no file can have is a failure like any other."""
    found = []
    for path in paths:
        try:
            found.append(canonical_path(path))
        except LibraryError as error:
            report.failed.append((os.fspath(path), str(error)))
    return found


QUICK_FROM = 8 * 2**20  # bytes of new files from which on a quick pass comes first
AHEAD = 2  # files that wait for a free worker, so that none waits for a file

Paths = Sequence[str | os.PathLike[str]]
RunPass = Callable[[AddProgressCallback], AddReport]


def choose_passes(passes: Sequence[Pass] | None, paths: bool, on: str | None) -> Sequence[Pass]:
    """Return the passes to run; raise an error where they do not go with the rest."""
    chosen = passes or (("thorough",) if on else PASSES)
    if unknown := set(chosen) - set(PASSES):
        raise ValueError(f"there is no pass {min(unknown)!r}; there are {', '.join(PASSES)}")
    if "quick" in chosen and on:
        raise WordreelError(
            "the quick pass runs in this process, not on workers",
            NextStep("take a quick look here, then add on workers"),
        )
    if not paths and "quick" in chosen:
        step = NextStep("name files or folders", command="add FOLDER")
        raise WordreelError("there is nothing to add", step)
    return chosen


def quick_experts(names: Sequence[str]) -> Sequence[str] | None:
    """Return the experts of the quick pass among some; None where none of them sees single frames."""
    eyes = [name for name in names if registry.sees_single_frames(name)]
    others = [name for name in names if name in ("ocr", "sound", "speech")]
    return [*eyes[-1:], *others] if eyes else None  # a backbone comes last and sees better


@dataclass(frozen=True)
class AddPasses:
    """The passes over some files, by name of the experts that the thorough one runs."""

    store: LibraryStore
    weights: WeightStore
    paths: Paths
    experts: Sequence[str]
    jobs: int | None
    options: AddOptions

    def quick(self, wanted: bool) -> RunPass | None:
        """Return the pass over key frames.

        Unless it is `wanted` by name, there is none where no expert can make it, and it takes no files where
        the new ones are few bytes.
        """
        chosen = quick_experts(self.experts)
        if chosen is not None:
            return partial(self._run_quick, chosen, 0 if wanted else QUICK_FROM)
        if wanted:
            raise WordreelError(
                "the quick pass needs an expert that sees single frames",
                NextStep("name clip among the experts, or leave them out"),
            )
        return None

    def thorough(self, executor: Executor | None) -> RunPass:
        """Return the pass of every expert over everything, in this process or on workers."""
        if executor is None:
            return self._run_thorough
        setup = ExtractSetup.of(self.store, self.experts, LoadFrom(self.weights.root))
        return partial(add_on, executor, self.store, self.paths, setup, options=self.options)

    def _run_quick(
        self, names: Sequence[str], least_bytes: int, on_progress: AddProgressCallback
    ) -> AddReport:
        jobs = self.jobs or default_jobs()

        def load(name: str) -> Expert:
            with shared_by(jobs):
                return registry.load_quick(name, self.weights)

        eyes, *others = names
        text = load("ocr") if "ocr" in others else None
        sound = [load("sound")] if "sound" in others else []
        speech = partial(load, "speech") if "speech" in others else None  # when the first short sound comes
        experts = QuickExperts([load(eyes)], text, sound, speech)
        options = replace(self.options, analysis="quick", only_waiting=False, least_bytes=least_bytes)
        with Fence() as fence:
            extractor = QuickExtractor(experts, fence, self.store.track_files)
            return add_with(extractor, self.store, self.paths, jobs, on_progress, options)

    def _run_thorough(self, on_progress: AddProgressCallback) -> AddReport:
        jobs = self.jobs or default_jobs()
        # Several files at once, each with a thread or two, finish sooner than one with all of them.
        with shared_by(jobs):
            loaded = [registry.load(name, self.weights) for name in self.experts]
        with Fence() as fence:
            extractor = LocalExtractor(loaded, fence, self.store.track_files)
            return add_with(extractor, self.store, self.paths, jobs, on_progress, self.options)


def add_on(
    executor: Executor,
    store: LibraryStore,
    paths: Paths,
    setup: ExtractSetup,
    on_progress: AddProgressCallback | None = None,
    options: AddOptions = DEFAULTS,
) -> AddReport:
    """Do as `add` does on workers: they write tracks, only this process writes to the catalogue.

    A worker or a machine may die meanwhile; its files are given to others.

    Raises:
        LibraryBusy: Another process is writing to the library.
        LibraryError: A worker does not see the library or the files.
        WeightsError: A worker's weights are missing, damaged or others than those of the rest.
    """
    extractor = ClusterExtractor(executor, setup)
    return add_with(extractor, store, paths, executor.count + AHEAD, on_progress, options)
