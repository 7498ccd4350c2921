"""Add files to a library with the workers of an executor."""

from __future__ import annotations

import os
from collections.abc import Sequence

from wordreel.catalogue.store import LibraryStore
from wordreel.ingest import add as ingest
from wordreel.ingest.add_report import AddProgressCallback, AddReport
from wordreel.ingest.record_file import EmbedContent
from wordreel.ingest.worker_extractor import ClusterExtractor, ExtractSetup
from wordreel.workers.executor import Executor

AHEAD = 2  # files that wait for a free worker, so that none waits for a file


def add_on(
    executor: Executor,
    store: LibraryStore,
    paths: Sequence[str | os.PathLike[str]],
    setup: ExtractSetup,
    on_progress: AddProgressCallback | None = None,
    retry_failed: bool = False,
    within: Sequence[str | os.PathLike[str]] | None = None,
    only_waiting: bool = False,
    embed: EmbedContent | None = None,
) -> AddReport:
    """`ingest.add` on workers: they write tracks, only this process writes to the catalogue.

    Interrupted or killed, the same call resumes. A worker or a machine may die meanwhile; its files are
    given to others. `embed` embeds a content whose clips are replaced.

    Raises:
        LibraryBusy: Another process is writing to the library.
        LibraryError: A worker does not see the library or the files.
        WeightsError: A worker's weights are missing, damaged or others than those of the rest.
    """
    extractor = ClusterExtractor(executor, setup)
    return ingest.add_with(
        extractor,
        store,
        paths,
        executor.count + AHEAD,
        on_progress,
        retry_failed,
        within,
        only_waiting=only_waiting,
        embed=embed,
    )
