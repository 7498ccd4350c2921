"""Which passes an `add` makes over its files, and with what: experts here, or workers elsewhere.

Each pass is one call of `library.ingest.add_with`; the ways to add differ in what extracts the tracks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from wordreel.catalogue.passes import PASSES, Pass
from wordreel.errors import NextStep, WordreelError

if TYPE_CHECKING:
    from wordreel.catalogue.store import LibraryStore
    from wordreel.experts.base import Expert
    from wordreel.ingest.add_report import AddProgressCallback, AddReport
    from wordreel.ingest.extractor import Extractor
    from wordreel.ingest.record_file import EmbedContent
    from wordreel.runtime.store import WeightStore
    from wordreel.workers.executor import Executor

QUICK_FROM = 8 * 2**20  # bytes of new files from which on a quick pass comes first

RunPass = Callable[["AddProgressCallback"], "AddReport"]


@dataclass(frozen=True)
class AddRequest:
    """What all passes of an `add` need to know."""

    files: Sequence[Path]
    experts: Sequence[str]
    jobs: int | None
    retry_failed: bool
    within: Sequence[str | PathLike[str]] | None
    only_waiting: bool  # for the thorough pass, not all that has changed
    embed: EmbedContent | None = None  # embeds a content whose clips are replaced


def choose_passes(passes: Sequence[Pass] | None, paths: bool, on: str | None) -> Sequence[Pass]:
    """The passes to run; raises where they do not go with the rest."""
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
    """The experts of the quick pass among some; None where none of them sees single frames."""
    from wordreel.experts import registry

    eyes = [name for name in names if registry.sees_single_frames(name)]
    others = [name for name in names if name in ("ocr", "sound", "speech")]
    return [*eyes[-1:], *others] if eyes else None  # a backbone comes last and sees better


def quick_pass(
    store: LibraryStore, weights: WeightStore, request: AddRequest, wanted: bool
) -> RunPass | None:
    """The quick pass. Unless it is `wanted` by name, there is none where no expert can make it, and it takes
    no files where the new ones are few bytes."""
    experts = quick_experts(request.experts)
    if experts is not None:
        extractor = partial(_quick_extractor, store, weights, experts)
        return partial(_add, extractor, store, request, "quick", 0 if wanted else QUICK_FROM)
    if wanted:
        raise WordreelError(
            "the quick pass needs an expert that sees single frames",
            NextStep("name clip among the experts, or leave them out"),
        )
    return None


def thorough_pass(
    store: LibraryStore, weights: WeightStore, request: AddRequest, executor: Executor | None
) -> RunPass:
    """The thorough pass, in this process or on workers."""
    if executor is not None:
        return partial(_add_on, executor, store, weights, request)
    extractor = partial(_thorough_extractor, store, weights, request.experts)
    return partial(_add, extractor, store, request, "thorough", 0)


def _add(
    extractor_for: Callable[[int], AbstractContextManager[Extractor]],
    store: LibraryStore,
    request: AddRequest,
    analysis: Pass,
    least_bytes: int,
    on_progress: AddProgressCallback,
) -> AddReport:
    """One pass in this process, so many files at once."""
    from wordreel.ingest import add as ingest

    jobs = request.jobs or ingest.default_jobs()
    with extractor_for(jobs) as extractor:
        return ingest.add_with(
            extractor,
            store,
            request.files,
            jobs,
            on_progress,
            request.retry_failed,
            request.within,
            analysis=analysis,
            only_waiting=request.only_waiting,
            least_bytes=least_bytes,
            embed=request.embed,
        )


@contextmanager
def _quick_extractor(
    store: LibraryStore, weights: WeightStore, experts: Sequence[str], jobs: int
) -> Iterator[Extractor]:
    """Key frames; speech is loaded when the first short sound comes."""
    from wordreel.experts import registry
    from wordreel.ingest.quick import QuickExperts, QuickExtractor
    from wordreel.media import Fence
    from wordreel.runtime.sessions import shared_by

    def load(name: str) -> Expert:
        with shared_by(jobs):
            return registry.load_quick(name, weights)

    eyes, *others = experts
    text = load("ocr") if "ocr" in others else None
    sound = [load("sound")] if "sound" in others else []
    speech = partial(load, "speech") if "speech" in others else None
    with Fence() as fence:
        yield QuickExtractor(QuickExperts([load(eyes)], text, sound, speech), fence, store.track_files)


@contextmanager
def _thorough_extractor(
    store: LibraryStore, weights: WeightStore, experts: Sequence[str], jobs: int
) -> Iterator[Extractor]:
    """Every expert on everything."""
    from wordreel.experts import registry
    from wordreel.ingest.extractor import LocalExtractor
    from wordreel.media import Fence
    from wordreel.runtime.sessions import shared_by

    # Several files at once, each with a thread or two, finish sooner than one with all of them.
    with shared_by(jobs):
        loaded = [registry.load(name, weights) for name in experts]
    with Fence() as fence:
        yield LocalExtractor(loaded, fence, store.track_files)


def _add_on(
    executor: Executor,
    store: LibraryStore,
    weights: WeightStore,
    request: AddRequest,
    on_progress: AddProgressCallback,
) -> AddReport:
    """The thorough pass on workers."""
    from wordreel.ingest.on_workers import add_on
    from wordreel.ingest.worker_extractor import ExtractSetup, LoadFrom

    setup = ExtractSetup.of(store, request.experts, LoadFrom(weights.root))
    return add_on(
        executor,
        store,
        request.files,
        setup,
        on_progress,
        request.retry_failed,
        request.within,
        request.only_waiting,
        request.embed,
    )
