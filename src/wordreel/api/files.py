"""`Library`: add, remove, list and back up files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.api.handle import LibraryHandle
from wordreel.catalogue.passes import Pass
from wordreel.catalogue.remove import MissingFiles, files_below, missing_files
from wordreel.progress import ProgressCallback

if TYPE_CHECKING:
    from wordreel.catalogue.records import Video
    from wordreel.ingest.add_passes import RunPass
    from wordreel.ingest.add_report import AddProgress, AddReport
    from wordreel.maintain.backup import BackupReport
    from wordreel.workers.executor import Executor

CHECKED_EMBEDDINGS = 2_000  # after each `add`
EMBED_EVERY = 30.0  # seconds of adding after which new videos become searchable


class FileMethods(LibraryHandle):
    """The methods of `Library` about the files in it."""

    def add(
        self,
        *paths: str | PathLike[str],
        experts: Sequence[str] | None = None,
        jobs: int | None = None,
        retry_failed: bool = False,
        within: Sequence[str | PathLike[str]] | None = None,
        on: str | None = None,
        passes: Sequence[Pass] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> AddReport:
        """Add files and folders, or bring them up to date. Interrupted, the same call resumes.

        The quick pass looks at the key frames of new files, so that all of them can be found soon; the
        thorough one then runs every expert on everything, on what searches returned first, then the newest.

        Args:
            paths: Files and folders. None, with only the thorough pass: all files that wait for it.
            experts: The experts that analyse the media; if None the default ones, and the image tower of the
                backbone that the library searches with.
            jobs: How many files to analyse at once.
            retry_failed: Try files again that failed before and have not changed.
            within: Refuse files that, links resolved, are in none of these folders.
            on: Where to analyse: in this process if None, in worker processes if `local`, on a Ray cluster if
                `ray` or its address; there is no quick pass there.
            passes: "quick", "thorough" or both. If None both, and only the thorough one where the new files
                are so small that it takes seconds.
            on_progress: Called with `AddProgress` while files are analysed and `Progress` while clips are
                embedded.

        Returns:
            What was added, changed, moved, skipped and what failed.

        Raises:
            LibraryBusy: Another process writes to the library.
            WeightsError: The weights of an expert are not on this machine.

        >>> (folder / "new films").mkdir()
        >>> library.add(folder / "new films", experts=["shots"]).added
        []
        """
        from wordreel.catalogue.passes import quick_contents, waiting_files
        from wordreel.ingest.add_passes import AddRequest, choose_passes, quick_pass, thorough_pass
        from wordreel.ingest.add_report import QuickReport, merge_passes
        from wordreel.maintain.degenerate_embeddings import degenerate_embeddings

        self._refuse_replica()
        chosen = choose_passes(passes, bool(paths), on)
        names = list(experts) if experts else self._default_experts()
        files = [Path(path).expanduser() for path in paths]
        if not files:
            files = [Path(file.path) for file in waiting_files(self.store.catalogue, retry_failed)]
        request = AddRequest(files, names, jobs, retry_failed, within, not paths, self._embed_content)
        reports = []
        if "quick" in chosen:
            quick = quick_pass(self.store, self.weights, request, wanted=passes is not None)
            reports += [] if quick is None else [self._run_pass(on_progress, quick)]
        if "thorough" in chosen:
            with self._executor(on, jobs) as executor:
                run = thorough_pass(self.store, self.weights, request, executor)
                reports.append(self._run_pass(on_progress, run, executor))
        report = reports[0] if len(reports) == 1 else merge_passes(*reports)
        if len(reports) == 1 and "thorough" not in chosen:
            report.quick = QuickReport.of(report)
        report.waiting = len(quick_contents(self.store.catalogue))
        suspicious = degenerate_embeddings(self.store, self.model, CHECKED_EMBEDDINGS)
        report.degenerate += [("", expert, problem.what) for expert, problem in suspicious]
        return report

    def _run_pass(
        self, on_progress: ProgressCallback | None, run: RunPass, executor: Executor | None = None
    ) -> AddReport:
        """Run one pass; embed what it has added now and then, and the rest, on workers if there are any, at
        its end."""
        first = not self.store.has_clips()
        embedded = time.monotonic()

        def advanced(now: AddProgress) -> None:
            nonlocal embedded
            if on_progress:
                on_progress(now)
            if time.monotonic() - embedded > EMBED_EVERY:
                self._embed_and_index()
                embedded = time.monotonic()

        report = run(advanced)
        workers = self._workers(executor)
        self._embed_and_index(on_progress, workers)
        if first:
            self.banks.build_everyday()
        self.banks.update(fit=None if workers is None else workers.fit)
        if self.people.on:
            self.people.update(on_progress)
        return report

    def _embed_content(self, content: str) -> None:
        from wordreel.embed.embed_library import embed_content

        embed_content(self.store, self.model, content)

    def _default_experts(self) -> list[str]:
        from wordreel.experts import registry
        from wordreel.models.model_store import backbone_in_use

        backbone = backbone_in_use(self.store, self.weights)
        return [*registry.default_names(), *([backbone] if backbone else [])]

    def remove(self, *paths: str | PathLike[str], dry_run: bool = False, forget: bool = False) -> list[str]:
        """Remove files and folders from the library; the media themselves stay.

        Args:
            paths: Files and folders.
            dry_run: Change nothing.
            forget: Also delete the tags and notes on them. They come back with the same file otherwise.

        Returns:
            The paths that were removed, or would be.

        Raises:
            LibraryBusy: Another process writes to the library.

        >>> library.remove("never-added.mp4")
        []
        """
        files = [Path(path).expanduser() for path in paths]
        if dry_run:
            return files_below(self.store.catalogue, files)
        self._refuse_replica()
        self._searcher = None
        return self.store.remove(files, forget)

    def missing(self) -> MissingFiles:
        """Find the files that are gone from their folders, and the folders that are not there now.

        Returns:
            The paths of the files, and the folders with their number of files.

        >>> library.missing()
        MissingFiles(gone=[], absent={})
        """
        return missing_files(self.store.catalogue)

    def remove_missing(self, forget: bool = False) -> list[str]:
        """Remove every file that is gone; what is in folders that are not there now stays.

        Args:
            forget: Also delete the tags and notes on them. They come back with the same file otherwise.

        Returns:
            The paths that were removed.

        Raises:
            LibraryBusy: Another process writes to the library.

        >>> library.remove_missing()
        []
        """
        self._refuse_replica()
        self._searcher = None
        return self.store.remove_missing(forget)

    def move_tracks(self, address: str, on_progress: ProgressCallback | None = None) -> int:
        """Keep the tracks in an object store from now on, or in the library's folder again.

        Args:
            address: `s3://bucket/folder`, which must hold nothing else, or `folder`.
            on_progress: Called as tracks are copied.

        Returns:
            How many tracks there are.

        Raises:
            LibraryBusy: Another process writes to the library.
            LibraryError: The place cannot be used, or a track is missing or damaged.

        >>> tracks = library.move_tracks("memory://films/tracks")
        >>> library.move_tracks("folder") == tracks
        True
        """
        from wordreel.maintain.move_tracks import move_tracks

        self._searcher = None
        return move_tracks(self.store, address, on_progress)

    def backup(
        self, folder: str | PathLike[str], on_progress: ProgressCallback | None = None
    ) -> BackupReport:
        """Copy the library to another folder, without its caches, also while others write to it.

        Args:
            folder: An empty folder, or one with an earlier backup; only what is new is copied.
            on_progress: Called with the tracks checked.

        Returns:
            What was copied, and which tracks are damaged.

        Raises:
            LibraryError: The folder holds something else or cannot be written.

        >>> import tempfile
        >>> library.backup(tempfile.mkdtemp()).damaged
        ()
        """
        from wordreel.maintain.backup import backup

        return backup(self.store, Path(folder), on_progress)

    def videos(self) -> list[Video]:
        """List everything in the library.

        Returns:
            One entry for each content, with all its paths.

        >>> sorted(Path(video.paths[0]).name for video in library.videos())
        ['meadow.mp4', 'poppies.mp4', 'sea.mp4']
        """
        return self.store.videos()

    def describe(self, path: str | PathLike[str]) -> dict[str, Any]:
        """Tell what is known of one file.

        Args:
            path: A file of the library.

        Returns:
            Its facts, its experts with their strongest labels, clips, captions and words, as plain values.

        Raises:
            LibraryError: The file is not in the library.

        >>> library.describe(media / "sea.mp4")["info"]["duration"]
        75.0
        """
        from wordreel.search.describe import describe

        return describe(self.store, Path(path).expanduser(), self.weights)
