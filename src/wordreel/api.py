"""`wordreel.Library`: everything the command line does, from Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.errors import LibraryBusy
from wordreel.library.store import LibraryStore
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit
from wordreel.weights.store import Store

if TYPE_CHECKING:
    from wordreel.library.progress import AddReport, Progress
    from wordreel.library.records import Video
    from wordreel.models.base import Model
    from wordreel.search.engine import Engine


EMBED_EVERY = 30.0  # seconds of adding after which what was added can be found


class Library:
    """A folder on disk that remembers videos and finds moments in them.

    With `create=False` a library that is not there is an error instead of a new one.
    """

    def __init__(
        self, path: str | PathLike[str], *, create: bool = True, weights: Store | None = None
    ) -> None:
        place = Path(path).expanduser()
        self.store = LibraryStore.create_or_open(place) if create else LibraryStore.open(place)
        self.weights = weights or Store()
        self._engine: Engine | None = None

    @property
    def path(self) -> Path:
        return self.store.path

    @cached_property
    def model(self) -> Model:
        """The joint embedding that answers searches."""
        from wordreel.models.bridge import Bridge

        return Bridge(self.weights)

    def add(
        self,
        *paths: str | PathLike[str],
        experts: Sequence[str] | None = None,
        jobs: int | None = None,
        retry_failed: bool = False,
        progress: Callable[[Progress], None] | None = None,
        embedding: Callable[[int, int], None] | None = None,
    ) -> AddReport:
        """Add files and folders, or bring them up to date. Interrupted, it goes on where it stopped.

        `experts` names who looks at the media; the default ones unless told.
        """
        from wordreel.experts import registry
        from wordreel.library import ingest
        from wordreel.media import Fence
        from wordreel.nets.runtime import shared_by

        names = list(experts) if experts else registry.default_names()
        jobs = jobs or ingest.default_jobs()
        # Several files at once, each with a thread or two, finish sooner than one with all of them.
        with shared_by(jobs):
            loaded = [registry.load(name, self.weights) for name in names]
        embedded = time.monotonic()

        def moved(now: Progress) -> None:
            nonlocal embedded
            if progress:
                progress(now)
            if time.monotonic() - embedded > EMBED_EVERY:
                self.refresh()
                embedded = time.monotonic()

        with Fence() as fence:
            report = ingest.add(
                self.store,
                [Path(path).expanduser() for path in paths],
                loaded,
                fence,
                jobs=jobs,
                progress=moved,
                retry_failed=retry_failed,
            )
        self.refresh(embedding)
        return report

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed the clips that are not embedded yet; returns how many there were."""
        from wordreel.search.refresh import refresh

        self._engine = None
        return refresh(self.store, self.model, progress)

    def search(
        self,
        text: str,
        limit: int = 10,
        *,
        folder: str | PathLike[str] | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        moments: bool = False,
    ) -> list[Hit]:
        """The best videos for some words, each with its best moment and the reasons; see `Hit`."""
        filters = Filters(None if folder is None else Path(folder), after, before)
        return self.engine().search(text, limit, filters, moments)

    def engine(self) -> Engine:
        """The open index; made anew when the library has changed through this object."""
        from wordreel.search.engine import Engine

        if self._engine is None:
            self._catch_up()
            self._engine = Engine(self.store, self.model)
        return self._engine

    def _catch_up(self) -> None:
        """Embed what is missing, unless somebody else is writing: then search what there is."""
        from wordreel.search.refresh import cache_of

        if cache_of(self.store, self.model).missing():
            with suppress(LibraryBusy):
                self.refresh()

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make all embeddings anew from the stored tracks; returns the number of clips."""
        from wordreel.search.refresh import cache_of

        cache_of(self.store, self.model).clear()
        return self.refresh(progress)

    def remove(self, *paths: str | PathLike[str]) -> list[str]:
        """Forget files and folders; the media themselves stay. Returns the paths forgotten."""
        self._engine = None
        return self.store.remove([Path(path).expanduser() for path in paths])

    def remove_missing(self) -> list[str]:
        """Forget every file that is no longer on the disk. Returns the paths forgotten."""
        self._engine = None
        return self.store.remove_missing()

    def videos(self) -> list[Video]:
        """Everything in the library."""
        return self.store.videos()

    def describe(self, path: str | PathLike[str]) -> dict[str, Any]:
        """What is known of one file: facts, experts with their strongest labels, clips and words."""
        from wordreel.search.describe import describe

        return describe(self.store, Path(path).expanduser(), self.weights)
