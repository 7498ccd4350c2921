"""`wordreel.Library`: everything the command line does, from Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.errors import LibraryBusy
from wordreel.library.store import LibraryStore
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit
from wordreel.weights.store import WeightStore

if TYPE_CHECKING:
    from wordreel.banks.manager import BankManager
    from wordreel.library.add_report import AddProgress, AddProgressCallback, AddReport
    from wordreel.library.extract import ExtractedFile
    from wordreel.library.records import Video
    from wordreel.models.base import Model
    from wordreel.search.caption import CaptionMatch
    from wordreel.search.like import Match
    from wordreel.search.searcher import Searcher
    from wordreel.search.use import ModelRow, Used
    from wordreel.search.video_query import VideoQuery
    from wordreel.training.tune.tune import Tuned


EMBED_EVERY = 30.0  # seconds of adding after which what was added can be found


class Library:
    """A folder on disk that remembers videos and finds moments in them.

    With `create=False` a library that is not there is an error instead of a new one.
    """

    def __init__(
        self, path: str | PathLike[str], *, create: bool = True, weights: WeightStore | None = None
    ) -> None:
        place = Path(path).expanduser()
        self.store = LibraryStore.create_or_open(place) if create else LibraryStore.open(place)
        self.weights = weights or WeightStore()
        self._searcher: Searcher | None = None

    @property
    def path(self) -> Path:
        return self.store.path

    @cached_property
    def model(self) -> Model:
        """The joint embedding that answers searches: `reel`, unless `use` chose another."""
        from wordreel.models.kept import open_kept

        return open_kept(self.store, self.weights)

    def use(self, model: str | PathLike[str], progress: Callable[[int, int], None] | None = None) -> Used:
        """Let another model answer: "reel", "bridge", a trained checkpoint's folder, or a model used before.

        The library is embedded anew from its stored tracks; interrupted, the old model stays in use.
        """
        from wordreel.search.use import use

        found, used = use(self.store, self.weights, fspath(model), progress)
        self.__dict__["model"] = found
        self._searcher = None
        return used

    def tune(
        self,
        captions: Mapping[str, Sequence[str]],
        *,
        dry_run: bool = False,
        seed: int = 0,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Tuned:
        """Adapt the default model to captions of this library's videos (file name → captions).

        The tuned model is kept and used only where captions of held-out videos find them better; see `Tuned`.
        """
        from wordreel.training.tune.settings import Settings
        from wordreel.training.tune.tune import tune

        settings = Settings(seed=seed)
        model, tuned = tune(self.store, self.weights, captions, settings, dry_run=dry_run, progress=progress)
        if model is not None:
            self.__dict__["model"] = model
            self._searcher = None
        return tuned

    def models(self) -> list[ModelRow]:
        """The models that this library can use, and how much of it each has embedded."""
        from wordreel.search.use import models

        return models(self.store, self.weights)

    def add(
        self,
        *paths: str | PathLike[str],
        experts: Sequence[str] | None = None,
        jobs: int | None = None,
        retry_failed: bool = False,
        progress: AddProgressCallback | None = None,
        embedding: Callable[[int, int], None] | None = None,
    ) -> AddReport:
        """Add files and folders, or bring them up to date. Interrupted, it goes on where it stopped.

        `experts` names who looks at the media; the default ones unless told.
        """
        from wordreel.experts import registry
        from wordreel.library import ingest
        from wordreel.media import Fence
        from wordreel.nets.runtime import shared_by

        first = not self.store.clip_ids()
        names = list(experts) if experts else registry.default_names()
        jobs = jobs or ingest.default_jobs()
        # Several files at once, each with a thread or two, finish sooner than one with all of them.
        with shared_by(jobs):
            loaded = [registry.load(name, self.weights) for name in names]
        embedded = time.monotonic()

        def moved(now: AddProgress) -> None:
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
        if first:
            self.banks.begin()
        self.banks.keep_current()
        return report

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed the clips that are not embedded yet; returns how many there were."""
        from wordreel.search.embedding import embed_library

        self._searcher = None
        return embed_library(self.store, self.model, progress)

    def search(
        self,
        text: str,
        limit: int = 10,
        *,
        folder: str | PathLike[str] | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        kind: str | None = None,
        min_duration: float | None = None,
        max_duration: float | None = None,
        has_speech: bool | None = None,
        has_text: bool | None = None,
        moments: bool = False,
        norm: str = "auto",
        bank: str | None = None,
        beta: float | None = None,
        min_confidence: float = 0.0,
    ) -> list[Hit]:
        """The best videos for some words, each with its best moment and the reasons; see `Hit`.

        `norm` is a query-bank normalisation: "auto" uses a bank that passed its check, "none" ranks plainly.
        `kind` is "video", "audio" or "image"; durations are in seconds.
        """
        place = None if folder is None else Path(folder)
        filters = Filters(place, after, before, min_duration, max_duration, has_speech, has_text, kind=kind)
        chosen = self.banks.choose(norm, bank, beta)
        return self.searcher().search(
            text, limit, filters, moments, chosen.norm, chosen.confidence, min_confidence
        )

    def like(
        self,
        video: str | PathLike[str],
        limit: int = 10,
        *,
        moment: float | None = None,
        folder: str | PathLike[str] | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        kind: str | None = None,
        min_duration: float | None = None,
        max_duration: float | None = None,
        has_speech: bool | None = None,
        has_text: bool | None = None,
    ) -> list[Match]:
        """The videos most like a file, best first. The file need not be in the library.

        With `moment`, a second, only the clip of the file that holds it is looked for. The filters are those
        of `search`, and about what is found, not about the file.
        """
        place = None if folder is None else Path(folder)
        filters = Filters(place, after, before, min_duration, max_duration, has_speech, has_text, kind=kind)
        sample = self.sample(video)
        return self.searcher().like(sample if moment is None else sample.at(moment), limit, filters)

    def caption(
        self,
        video: str | PathLike[str],
        captions: Sequence[str],
        limit: int = 5,
        *,
        norm: str = "none",
        beta: float | None = None,
    ) -> list[CaptionMatch]:
        """Which captions say best what a file shows, best first. The file need not be in the library.

        `norm` holds back captions that fit everything, by a bank of the library's other videos.
        """
        from wordreel.search.caption import caption

        return caption(self.searcher(), self.sample(video), captions, limit, norm, beta)

    def sample(self, video: str | PathLike[str]) -> VideoQuery:
        """A file as a question: what the library knows of it, or what its experts see in it now."""
        from wordreel.search.video_query import encode_video

        return encode_video(self.store, self.model, Path(video).expanduser(), self._study)

    def _study(self, path: Path) -> ExtractedFile:
        from wordreel.experts import registry
        from wordreel.library.extract import extract_file
        from wordreel.media import Fence
        from wordreel.search.video_query import experts_for

        experts = [registry.load(name, self.weights) for name in experts_for(self.store, self.model)]
        with Fence() as fence:
            return extract_file(path, experts, fence)

    @cached_property
    def banks(self) -> BankManager:
        """The library's query banks."""
        from wordreel.banks.manager import BankManager

        return BankManager(self)

    def searcher(self) -> Searcher:
        """The open index; made anew when the library has changed through this object."""
        from wordreel.search.fitting import check_model_fits
        from wordreel.search.searcher import Searcher

        if self._searcher is None:
            check_model_fits(self.store, self.model)
            self._catch_up()
            self._searcher = Searcher(self.store, self.model)
        return self._searcher

    def _catch_up(self) -> None:
        """Embed what is missing, unless somebody else is writing: then search what there is."""
        from wordreel.search.embedding import embedding_cache

        if embedding_cache(self.store, self.model).missing():
            with suppress(LibraryBusy):
                self.refresh()

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make all embeddings anew from the stored tracks; returns the number of clips."""
        from wordreel.search.embedding import embedding_cache

        embedding_cache(self.store, self.model).clear()
        return self.refresh(progress)

    def remove(self, *paths: str | PathLike[str]) -> list[str]:
        """Forget files and folders; the media themselves stay. Returns the paths forgotten."""
        self._searcher = None
        return self.store.remove([Path(path).expanduser() for path in paths])

    def remove_missing(self) -> list[str]:
        """Forget every file that is no longer on the disk. Returns the paths forgotten."""
        self._searcher = None
        return self.store.remove_missing()

    def videos(self) -> list[Video]:
        """Everything in the library."""
        return self.store.videos()

    def describe(self, path: str | PathLike[str]) -> dict[str, Any]:
        """What is known of one file: facts, experts with their strongest labels, clips and words."""
        from wordreel.search.describe import describe

        return describe(self.store, Path(path).expanduser(), self.weights)
