"""An open library: its files, the model and the searcher over it, and the managers of what it holds.

The methods of `Library` stand in the files beside this one, by what they are for. They share this state, and
none of them calls another's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NOT_WRITABLE, LibraryBusy, LibraryReadOnly, NextStep
from wordreel.progress import ProgressCallback
from wordreel.runtime.store import WeightStore

if TYPE_CHECKING:
    from wordreel.banks.library_workers import LibraryWorkers
    from wordreel.banks.manager import BankManager
    from wordreel.catalogue.annotation_manager import AnnotationManager
    from wordreel.ingest.extract import ExtractedFile
    from wordreel.models.base import Model
    from wordreel.people.people_manager import PeopleManager
    from wordreel.search.saved import SavedSearches
    from wordreel.search.searcher import Searcher
    from wordreel.search.video_query import FileAnalyser
    from wordreel.util.server_address import ServerAddress
    from wordreel.workers.executor import Executor

log = logging.getLogger("wordreel")


class LibraryHandle:
    """What all methods of `Library` share."""

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
        """The joint embedding that answers searches: `reel`, unless `use` chose another."""
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
        >>> [Path(hit.path).name for hit in library.search("waves tag:beach")]
        ['sea.mp4']
        >>> library.annotations.remove(tagged.id).text
        'beach'
        """
        from wordreel.catalogue.annotation_manager import AnnotationManager

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
        >>> [Path(hit.path).name for hit in library.search(library.saved.get("long and green").query)][:1]
        ['meadow.mp4']
        >>> library.saved.remove("long and green")
        """
        from wordreel.search.saved import SavedSearches

        return SavedSearches(self.store)

    def searcher(self) -> Searcher:
        """The searcher over the library as it is now; another one after a change through this object."""
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

    def search_with(self, searcher: Callable[[], Searcher], note_hits: bool) -> None:
        """Search with what `searcher` returns: a server swaps it while it answers.

        Without `note_hits`, a search writes nothing to the library.
        """
        self._live_searcher, self._note_hits = searcher, note_hits

    @property
    def is_replica(self) -> bool:
        """Whether the library follows one that is published; a replica is searched, not changed.

        >>> library.is_replica
        False
        """
        from wordreel.maintain.publication import is_replica

        return is_replica(self.store)

    def index_server(self) -> ServerAddress | None:
        """The vector server that searches the library; None if it is searched on this machine.

        >>> library.index_server() is None
        True
        """
        from wordreel.search.server_index import chosen_server

        return chosen_server(self.store, self._index)

    def _refuse_replica(self) -> None:
        if self.is_replica:
            step = NextStep("change the library that it follows")
            raise LibraryReadOnly(f"{self.path} is a replica of a published library", step)

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
        """The workers that `on` names; None for this process."""
        if on is None:
            yield None
            return
        from wordreel.workers.open_executor import open_executor

        with open_executor(on, count) as executor:
            yield executor

    def _workers(self, executor: Executor | None) -> LibraryWorkers | None:
        if executor is None:
            return None
        from wordreel.banks.library_workers import LibraryWorkers

        return LibraryWorkers.of(executor, self.store, self.weights, self.model)
