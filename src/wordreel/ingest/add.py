"""Add files to a library: plan, process files in worker threads, record results in one writer."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from wordreel.catalogue.paths import canonical_path
from wordreel.catalogue.remove import drop_unreferenced
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError
from wordreel.experts.base import Expert
from wordreel.ingest.add_report import AddProgressCallback, AddReport
from wordreel.ingest.extract import Extractor, LocalExtractor, MediaDecoder
from wordreel.ingest.plan import AddPlanner
from wordreel.ingest.record_file import remove_lost_failures
from wordreel.ingest.run import AddRun
from wordreel.ingest.tasks import AddOptions
from wordreel.util.cores import cores

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
    """As many files as there are cores, at most eight: the experts of each work while it is decoded."""
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
