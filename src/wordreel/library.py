"""`Library`: everything the command line does, from Python.

The examples run against a library of three short films: red poppies, a green meadow and the blue sea.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from wordreel.catalogue.passes import Pass
from wordreel.catalogue.remove import MissingFiles, files_below, missing_files
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NOT_WRITABLE, LibraryBusy, LibraryError
from wordreel.progress import ProgressCallback
from wordreel.runtime.store import WeightStore
from wordreel.search.hits import CaptionMatch, Hit, MatchTimeline, Results
from wordreel.search.query import Query, QueryArguments, VideoMoment
from wordreel.search.query_fields import SearchNorm

if TYPE_CHECKING:
    from wordreel.backbones.installed import Precision
    from wordreel.banks.library_workers import LibraryWorkers
    from wordreel.banks.manager import BankManager
    from wordreel.catalogue.annotations import AnnotationManager
    from wordreel.catalogue.records import Video
    from wordreel.embed.switch_model import ConfirmDownload, ModelRow, UseResult
    from wordreel.ingest.add import RunPass
    from wordreel.ingest.add_report import AddProgress, AddReport
    from wordreel.ingest.extract import ExtractedFile
    from wordreel.ingest.watch import WatchEvent
    from wordreel.maintain.backup import BackupReport
    from wordreel.maintain.publication import PublicationReport
    from wordreel.models.base import Model
    from wordreel.models.laboratory import ConversionOptions
    from wordreel.people.people_manager import PeopleManager
    from wordreel.search.saved import SavedSearches
    from wordreel.search.searcher import Searcher
    from wordreel.search.server_index import IndexStatus
    from wordreel.search.video_query import FileAnalyser, VideoQuery
    from wordreel.types import QueryEmbedding
    from wordreel.util.server_address import ServerAddress
    from wordreel.workers.executor import Executor

log = logging.getLogger("wordreel")
CHECKED_EMBEDDINGS = 2_000  # after each `add`
EMBED_EVERY = 30.0  # seconds of adding after which new videos become searchable
RECALL_QUERIES = 100  # of a bank


class Library:
    """A folder on disk that holds what is known of videos, and finds moments in them.

    Args:
        path: The library's folder. The videos themselves stay where they are.
        create: Create the library if it does not exist.
        weights: Where the weights of experts and models are; the user's weight store by default.
        model: Answer with this model instead of the one that the library uses.
        index: Search by this vector server (`postgresql://…`, `milvus://…`) or "local", instead of what the
            library remembers.

    Raises:
        LibraryError: There is no library at `path` and `create` is false, or it cannot be opened.

    >>> with Library(folder / "films") as films:
    ...     films.videos()
    []
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        create: bool = True,
        weights: WeightStore | None = None,
        model: Model | None = None,
        index: str | None = None,
    ) -> None:
        root = Path(path).expanduser()
        self.store = LibraryStore.create_or_open(root) if create else LibraryStore.open(root)
        self.weights = weights or WeightStore()
        self._model, self._index = model, index
        self._searcher: Searcher | None = None
        self._live_searcher: Callable[[], Searcher] | None = None
        self._live_model: Callable[[], Model] | None = None
        self._note_hits = True

    def close(self) -> None:
        """Close the library's files. Leaving a `with` block does it too."""
        self._searcher = None
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The library's folder."""
        return self.store.path

    @property
    def model(self) -> Model:
        """The joint embedding that answers searches: `joint`, unless `use` chose another."""
        if self._live_model is not None:
            return self._live_model()
        if self._model is None:
            from wordreel.models.model_store import open_model

            self._model = open_model(self.store, self.weights)
        return self._model

    @cached_property
    def banks(self) -> BankManager:
        """The library's query banks.

        >>> library.banks.list()
        []
        """
        from wordreel.banks.manager import BankManager

        return BankManager(self.store, lambda: self.model, self.searcher, self._banks_changed)

    @cached_property
    def annotations(self) -> AnnotationManager:
        """Tags and notes on moments.

        >>> tagged = library.annotations.tag(media / "sea.mp4", "beach", start=10, end=30)
        >>> [hit.path.name for hit in library.search("waves tag:beach")]
        ['sea.mp4']
        >>> library.annotations.remove(tagged.id).text
        'beach'
        """
        from wordreel.catalogue.annotations import AnnotationManager

        return AnnotationManager(self.store)

    @cached_property
    def people(self) -> PeopleManager:
        """People, grouped by their faces; off unless turned on.

        >>> library.people.on, library.people.list()
        (False, [])
        """
        from wordreel.people.people_manager import PeopleManager

        return PeopleManager(self.store)

    @cached_property
    def saved(self) -> SavedSearches:
        """Saved searches.

        >>> saved = library.saved.save("long and green", Query.build("green", min_duration=60))
        >>> [hit.path.name for hit in library.search(library.saved.get("long and green").query)][:1]
        ['meadow.mp4']
        >>> library.saved.remove("long and green")
        """
        from wordreel.search.saved import SavedSearches

        return SavedSearches(self.store)

    def searcher(self) -> Searcher:
        """Return the searcher of the library as it is now; a change through this object makes another one."""
        if self._live_searcher is not None:
            return self._live_searcher()
        from wordreel.banks.choose_scoring import choose_scoring
        from wordreel.embed.embed_library import check_model_fits, outdated_error
        from wordreel.search.searcher import Searcher

        if self._searcher is None:
            check_model_fits(self.store, self.model)
            if error := outdated_error(self.store, self.model):
                log.warning("%s", error)
            self._embed_missing()
            self._searcher = Searcher.open(
                self.store, self.model, choose_scoring, self._analyse, self.index_server()
            )
        return self._searcher

    def search_with(
        self, searcher: Callable[[], Searcher], model: Callable[[], Model], note_hits: bool
    ) -> None:
        """Search with what `searcher` and `model` return: a server swaps both while it answers.

        Without `note_hits`, a search writes nothing to the library.
        """
        self._live_searcher, self._live_model, self._note_hits = searcher, model, note_hits
        self._model = None  # one that is no longer used must not stay in memory

    @property
    def is_replica(self) -> bool:
        """Whether the library follows one that is published; a replica is searched, not changed.

        >>> library.is_replica
        False
        """
        return self.store.is_replica

    def index_server(self) -> ServerAddress | None:
        """Return the vector server that searches the library; None if it is searched on this machine.

        >>> library.index_server() is None
        True
        """
        from wordreel.search.server_index import chosen_server

        return chosen_server(self.store, self._index)

    def _embed_and_index(
        self, on_progress: ProgressCallback | None = None, workers: LibraryWorkers | None = None
    ) -> int:
        """Embed the clips that are not embedded yet, on workers if there are any; returns how many."""
        from wordreel.banks.search_index import build_index
        from wordreel.embed.embed_library import embed_library

        self._searcher = None
        embed_videos = None if workers is None else workers.embed_videos
        embedded = embed_library(self.store, self.model, on_progress, embed_videos)
        build_index(self.store, self.model, on_progress)
        return embedded

    def _embed_missing(self) -> None:
        """Embed what is missing, unless that cannot be written now: then search what there is."""
        from wordreel.banks.search_index import index_is_stale
        from wordreel.embed.embed_library import embedding_cache

        missing = embedding_cache(self.store, self.model).missing()
        if missing or index_is_stale(self.store, self.model):
            nothing = not len(embedding_cache(self.store, self.model).raw())
            with suppress(LibraryBusy, *(() if nothing else NOT_WRITABLE)):
                self._embed_and_index()

    def _banks_changed(self) -> None:
        if self._searcher is not None:
            self._searcher = self._searcher.with_new_banks()

    def _analyse(self, path: Path, model: Model) -> ExtractedFile:
        return self._analyser(path, model)

    @cached_property
    def _analyser(self) -> FileAnalyser:
        from wordreel.search.video_query import FileAnalyser

        return FileAnalyser(self.store, self.weights)

    @contextmanager
    def _executor(self, on: str | None, count: int | None = None) -> Iterator[Executor | None]:
        """Yield the workers that `on` names; None for this process."""
        if on is None:
            yield None
            return
        from wordreel.workers.executor import open_executor

        with open_executor(on, count) as executor:
            yield executor

    def _workers(self, executor: Executor | None) -> LibraryWorkers | None:
        if executor is None:
            return None
        from wordreel.banks.library_workers import LibraryWorkers

        return LibraryWorkers.of(executor, self.store, self.weights, self.model)

    def search(
        self,
        query: str | Query | None = None,
        *,
        on_progress: ProgressCallback | None = None,
        **arguments: Unpack[QueryArguments],
    ) -> Results[Hit]:
        """Find the moments that fit some words best, or that are like a file.

        Args:
            query: Words, or a `Query`; none with `like` or `image`.
            on_progress: Called while a query bank is embedded for the first time.
            **arguments: The other fields of `Query` (`then`, `like`, `limit`, `norm`, …) and of `Filters`
                (`folder`, `kind`, `min_duration`, …), if `query` is not a `Query` that has them already.

        Returns:
            The hits, best first, with the reasons for each, as a sequence.

        Raises:
            QueryError: The query contradicts itself.
            BankError: The normalisation needs a query bank that there is not.

        >>> best = library.search("red flowers", limit=1)[0]
        >>> best.path.name, best.rank
        ('poppies.mp4', 1)
        >>> [hit.path.name for hit in library.search(Query("green", filters=Filters(min_duration=60)))]
        ['meadow.mp4', 'sea.mp4']
        >>> hit = library.search("blue", then="blue", limit=1)[0]
        >>> hit.path.name, hit.end <= hit.then[0]
        ('sea.mp4', True)
        >>> [match.path.name for match in library.search(like=media / "poppies.mp4")]
        ['sea.mp4', 'meadow.mp4']
        """
        if isinstance(query, Query):
            if arguments:
                raise TypeError("give a Query or keyword arguments, not both")
        else:
            query = Query.build(query, **arguments)
        from wordreel.search.words.query_terms import resolve_terms

        results = self.searcher().search(resolve_terms(self.store, query), on_progress=on_progress)
        self._note_returned(results)
        return results

    def _note_returned(self, results: Results[Hit]) -> None:
        """Let the thorough pass take the files first that a search returned after a quick look."""
        from wordreel.catalogue.passes import note_returned

        quick = [hit.content for hit in results if hit.analysis == "quick"]
        if quick and self._note_hits and not self.is_replica:
            with suppress(LibraryError):  # busy or full: the order of a later pass is not worth an error
                note_returned(self.store, quick)

    def search_many(self, queries: Sequence[str | Query]) -> list[Results[Hit]]:
        """Answer several queries; their texts are encoded in one batch.

        Args:
            queries: Words or `Query` objects.

        Returns:
            The results of each query, in order.

        Raises:
            QueryError: One of the queries contradicts itself.

        >>> [Path(results[0].path).name for results in library.search_many(["red", "green", "blue"])]
        ['poppies.mp4', 'meadow.mp4', 'sea.mp4']
        """
        from wordreel.search.words.query_terms import resolve_terms

        asked = [resolve_terms(self.store, q if isinstance(q, Query) else Query(q)) for q in queries]
        found = self.searcher().search_many(asked)
        for results in found:
            self._note_returned(results)
        return found

    def where(
        self,
        video: str | PathLike[str],
        text: str,
        *,
        norm: SearchNorm = "auto",
        bank: str | None = None,
        beta: float | None = None,
    ) -> MatchTimeline:
        """Score how well words match a video over time.

        Args:
            video: A file of the library.
            text: The words.
            norm: Query-bank normalisation, as in `Query`.
            bank: The name of the bank, as in `Query`.
            beta: Inverse temperature, as in `Query`.

        Returns:
            Scores in [0, 1] for each step of time, and the best moments.

        Raises:
            LibraryError: The file is not in the library.

        >>> library.where(media / "sea.mp4", "blue").duration
        75.0
        """
        from wordreel.search.words.query_terms import resolve_terms

        file = self.store.required_file(video)
        query = resolve_terms(self.store, Query(text, norm=norm, bank=bank, beta=beta))
        return self.searcher().where(file.content, query)

    def caption(
        self,
        video: str | PathLike[str],
        captions: Sequence[str],
        limit: int = 5,
        *,
        norm: str = "none",
        beta: float | None = None,
    ) -> list[CaptionMatch]:
        """Rank captions by how well they describe a file.

        Args:
            video: A file; it need not be in the library, and is not added.
            captions: The captions to choose from.
            limit: How many to return.
            norm: A normalisation that lowers captions which fit every video of the library.
            beta: Inverse temperature; chosen without labels by default.

        Returns:
            The best captions, best first.

        Raises:
            QueryError: There are no captions, or the file cannot be read.

        >>> [match.text for match in library.caption(media / "sea.mp4", ["a red car", "the blue sky"])]
        ['the blue sky', 'a red car']
        """
        from wordreel.search.caption import rank_captions
        from wordreel.search.video_query import encode_video

        encoded = encode_video(self.store, self.model, VideoMoment(video), self._analyser)
        return rank_captions(self.searcher(), encoded, captions, limit, norm, beta)

    def export_hits(self, hits: Iterable[Hit], form: str) -> str:
        """Write hits as a list that other programs read.

        Args:
            hits: The hits of a search.
            form: "csv" (a table), "edl" (CMX 3600), "otio" (OpenTimelineIO) or "m3u" (a playlist).

        Returns:
            The list as text.

        Raises:
            QueryError: There is no such format, or it cannot hold so many hits.

        >>> print(library.export_hits(library.search("red", limit=1), "m3u").splitlines()[0])
        #EXTM3U
        """
        from wordreel.search.hit_lists import write_hits

        return write_hits(self.store, hits, form)

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
        from wordreel.ingest.add import AddPasses, choose_passes
        from wordreel.ingest.add_report import QuickReport, merge_passes
        from wordreel.ingest.tasks import AddOptions
        from wordreel.maintain.wrong_values import degenerate_embeddings

        self.store.refuse_replica()
        chosen = choose_passes(passes, bool(paths), on)
        names = list(experts) if experts else self._default_experts()
        files = [Path(path).expanduser() for path in paths]
        if not files:
            files = [Path(file.path) for file in waiting_files(self.store.catalogue, retry_failed)]
        options = AddOptions(retry_failed, within, only_waiting=not paths, embed=self._embed_content)
        run = AddPasses(self.store, self.weights, files, names, jobs, options)
        reports = []
        if "quick" in chosen:
            quick = run.quick(wanted=passes is not None)
            reports += [] if quick is None else [self._run_pass(on_progress, quick)]
        if "thorough" in chosen:
            with self._executor(on, jobs) as executor:
                reports.append(self._run_pass(on_progress, run.thorough(executor), executor))
        report = reports[0] if len(reports) == 1 else merge_passes(*reports)
        if len(reports) == 1 and "thorough" not in chosen:
            report.quick = QuickReport.of(report)
        report.waiting = len(quick_contents(self.store.catalogue))
        suspicious = degenerate_embeddings(self.store, self.model, CHECKED_EMBEDDINGS)
        report.degenerate += [("", expert, problem.what) for expert, problem in suspicious]
        return report

    def watch(
        self,
        *folders: str | PathLike[str],
        once: bool = False,
        within: Sequence[str | PathLike[str]] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Iterator[WatchEvent]:
        """Add new and changed files of folders as they come, one at a time.

        A file gets the quick pass when its size and time have been the same for three seconds, and the
        thorough one when there is nothing else to do. Files that are gone stay in the library; a folder that
        is not there is waited for.

        Args:
            folders: The folders; those inside of them are watched too.
            once: Stop when everything that is still has been added.
            within: Refuse files that, links resolved, are in none of these folders.
            on_progress: Called as by `add`.

        Yields:
            What happens, as `WatchEvent`.

        Raises:
            WeightsError: The weights of an expert are not on this machine.

        >>> (folder / "watched").mkdir()
        >>> [event.kind for event in library.watch(folder / "watched", once=True)]
        ['idle']
        """
        from wordreel.ingest.watch import watch_folders

        self.store.refuse_replica()

        def add(paths: Sequence[str], analysis: Pass) -> AddReport:
            return self.add(*paths, jobs=1, within=within, passes=[analysis], on_progress=on_progress)

        files = [Path(folder).expanduser() for folder in folders]
        yield from watch_folders(self.store, files, add, within, once)

    def _run_pass(
        self, on_progress: ProgressCallback | None, run: RunPass, executor: Executor | None = None
    ) -> AddReport:
        """Run one pass, and embed what it has added now and then.

        The rest is embedded at its end, on workers if there are any.
        """
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
        self.store.refuse_replica()
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
        self.store.refuse_replica()
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

    def models(self) -> list[ModelRow]:
        """List the models that this library can use.

        Returns:
            Each model's name and fingerprint, whether it is in use, and how many clips it has embedded.

        >>> library.models()[0].name
        'joint'
        """
        from wordreel.embed.switch_model import models

        return models(self.store, self.weights)

    def use(
        self,
        model: str | PathLike[str],
        on_progress: ProgressCallback | None = None,
        *,
        conversion: ConversionOptions | None = None,
        confirm_download: ConfirmDownload | None = None,
        precision: Precision = "fp32",
    ) -> UseResult:
        """Let another model answer searches. Interrupted, the old model stays in use.

        Args:
            model: "joint", a CLIP-like backbone (its name, a file, a folder in Hugging Face layout
                or a hub id), the folder of a trained checkpoint, a published checkpoint of CE, MoEE or MMT,
                or a model used before.
            on_progress: Called while a backbone is downloaded, with `AddProgress` while frames are embedded
                by it, and while clips are embedded.
            conversion: How to convert a published checkpoint.
            confirm_download: Asked before a backbone is downloaded; without it, nothing is.
            precision: In which the towers of a backbone are stored and run: "fp32", "fp16" or "int8".

        Returns:
            The model's name and fingerprint, and how many clips were embedded.

        Raises:
            LibraryError: There is no such model, or it was trained on other features.
            WeightsMissing: The backbone is not on this machine, and the download was refused.

        >>> library.use("no such model")
        Traceback (most recent call last):
        wordreel.errors.LibraryError: there is no model 'no such model'...
        """
        from wordreel.embed.switch_model import use

        self._model, used = use(
            self.store,
            self.weights,
            fspath(model),
            on_progress,
            conversion=conversion,
            confirm_download=confirm_download,
            precision=precision,
            before_switch=lambda new: self._embed_banks(new, on_progress),
        )
        self._searcher = None
        return used

    def _embed_banks(self, model: Model, on_progress: ProgressCallback | None) -> None:
        """Embed the query banks with a model, so that its first search does not wait for them."""
        from wordreel.banks.embedded_bank import EmbeddedBank
        from wordreel.search.searcher import Searcher

        searcher = Searcher.open(self.store, model)
        for row in self.banks.list():
            EmbeddedBank.open(searcher, self.banks.show(row.name), on_progress)

    def embed(self, on_progress: ProgressCallback | None = None, *, on: str | None = None) -> int:
        """Embed the clips that are not embedded yet, from stored tracks; index a large library anew.

        Args:
            on_progress: Called as clips are embedded and the index is built.
            on: Embed on workers, as in `add`.

        Returns:
            How many clips there were.

        Raises:
            LibraryBusy: Another process writes to the library.

        >>> library.embed()
        0
        """
        with self._executor(on) as executor:
            return self._embed_and_index(on_progress, self._workers(executor))

    def reindex(self, on_progress: ProgressCallback | None = None, *, on: str | None = None) -> int:
        """Embed all clips again, from stored tracks. No video is decoded.

        Args:
            on_progress: Called as clips are embedded.
            on: Embed on workers, as in `add`.

        Returns:
            The number of clips.

        Raises:
            LibraryBusy: Another process writes to the library.

        >>> library.reindex() == len(library.store.clip_ids())
        True
        """
        from wordreel.embed.embed_library import embedding_cache

        embedding_cache(self.store, self.model).clear()
        return self.embed(on_progress, on=on)

    def encode_text(self, text: str) -> QueryEmbedding:
        """Encode one text; see `encode_texts`.

        >>> library.encode_text("green").vectors[0]
        array([0., 1., 0.], dtype=float32)
        """
        return self.encode_texts([text])[0]

    def encode_texts(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        """Encode texts with the library's model, in one batch.

        Args:
            texts: The texts.

        Returns:
            For each text `vectors [experts, dim]` and the mixture `weights [experts]`.

        Raises:
            WeightsError: The weights of the model are not on this machine.

        >>> [embedding.weights.shape for embedding in library.encode_texts(["red", "blue"])]
        [(2,), (2,)]
        """
        return self.model.encode([text.strip() for text in texts])

    def encode_video(self, video: str | PathLike[str]) -> VideoQuery:
        """Encode the clips of a file with the library's model.

        Args:
            video: A file; what the library does not know is analysed by its experts now.

        Returns:
            The clips, their `vectors [clips, experts, dim]` and `available [clips, experts]`.

        Raises:
            QueryError: The file cannot be read.

        >>> library.encode_video(media / "poppies.mp4").vectors.shape
        (1, 2, 3)
        """
        from wordreel.search.video_query import encode_video

        return encode_video(self.store, self.model, VideoMoment(video), self._analyser)

    def use_index(
        self, address: str, *, deep: bool = False, on_progress: ProgressCallback | None = None
    ) -> IndexStatus:
        """Search by a vector server from now on: send it what it does not have, and remember its address.

        Args:
            address: `postgresql://USER@HOST/DATABASE`, `milvus://HOST`; `?mode=hnsw` searches approximately.
                The password may be in `$WORDREEL_INDEX_PASSWORD`; it is not stored.
            deep: Compare the vectors on the server too, and send those again that differ.
            on_progress: Called as clips are sent.

        Returns:
            What the server has, and its recall on the queries of the library's largest bank.

        Raises:
            IndexServerError: The server cannot be reached, or lacks something; the error says what to do.
        """
        from wordreel.banks.search_index import bank_sample
        from wordreel.search.server_index import use_server
        from wordreel.util.server_address import parse_address

        server = parse_address(address)
        self._embed_missing()
        self._searcher = None
        queries = bank_sample(self.store, self.model, RECALL_QUERIES)
        status = use_server(server, self.store, self.model, queries, on_progress, deep)
        self._index = address  # with the password, which the library does not remember
        return status

    def index_status(self) -> IndexStatus | None:
        """Return what the vector server has; None if the library is searched on this machine.

        Raises:
            IndexServerError: The server cannot be reached.

        >>> library.index_status() is None
        True
        """
        from wordreel.search.server_index import index_status

        server = self.index_server()
        return None if server is None else index_status(server, self.store, self.model)

    def leave_index(self, *, drop: bool = False) -> None:
        """Search on this machine from now on.

        Args:
            drop: Delete what the server holds of this library and its model.

        Raises:
            WordreelError: No server searches the library.
        """
        from wordreel.search.server_index import forget_server

        forget_server(self.index_server(), self.store, self.model, drop)
        self._searcher = self._index = None

    def publish(self, address: str, on_progress: ProgressCallback | None = None) -> PublicationReport:
        """Publish the library in PostgreSQL for servers on other machines, or update its publication.

        Args:
            address: `postgresql://USER@HOST/DATABASE`; `?library=NAME` where several are published there.
            on_progress: Called as tracks are sent.

        Returns:
            The generation that is published now, and how many rows and tracks were sent.

        Raises:
            LibraryError: Another library is published under the name.
            IndexServerError: The server cannot be reached, or refuses.
        """
        from wordreel.maintain.publication import publish
        from wordreel.util.server_address import parse_published

        return publish(self.store, parse_published(address), on_progress)

    def follow(self, address: str, on_progress: ProgressCallback | None = None) -> PublicationReport:
        """Bring this replica to what is published, and embed what is new.

        Args:
            address: As in `publish`.
            on_progress: Called as tracks are fetched and clips embedded.

        Returns:
            The generation that the replica has now, and how many rows and tracks were fetched.

        Raises:
            LibraryError: Nothing is published there, or this folder holds a library of its own.
            IndexServerError: The server cannot be reached, or refuses.
        """
        from wordreel.maintain.publication import follow
        from wordreel.util.server_address import parse_published

        report = follow(self.store, parse_published(address), on_progress)
        self._embed_and_index(on_progress)
        self.banks.update()
        return report
