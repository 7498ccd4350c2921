"""`wordreel use` with a CLIP-like backbone: install it, embed the frames of every video, then switch.

Searches go on with the previous model until the last step. Killed at any moment, the same call resumes: the
download, the conversion and each video are steps that are done or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wordreel.backbones import installed as backbones
from wordreel.backbones.installed import InstallPlan, Precision
from wordreel.catalogue.paths import is_imported
from wordreel.catalogue.records import StoredFile
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embedding_cache
from wordreel.errors import LibraryError, NextStep, WeightsError, WeightsMissing
from wordreel.experts import registry
from wordreel.experts.base import Expert
from wordreel.ingest.add import add
from wordreel.ingest.add_report import AddReport
from wordreel.ingest.extract import MediaDecoder
from wordreel.media import Fence
from wordreel.models import model_store
from wordreel.models.base import Model
from wordreel.models.laboratory import export_backbone
from wordreel.progress import ProgressCallback
from wordreel.runtime.store import WeightStore

ConfirmDownload = Callable[[InstallPlan], bool]
"""Asked before anything is downloaded; False refuses."""


@dataclass(frozen=True)
class PreparedBackbone:
    """An installed backbone whose frame embeddings the library has, and notes for the owner."""

    name: str
    model: Model
    notes: list[str]


def prepare_backbone(
    store: LibraryStore,
    weights: WeightStore,
    source: str,
    on_progress: ProgressCallback | None = None,
    confirm_download: ConfirmDownload | None = None,
    precision: Precision = "fp32",
    decoder: MediaDecoder | None = None,
) -> PreparedBackbone:
    """Install a backbone and extract the frame embeddings that the library lacks.

    Args:
        store: The library.
        weights: The weights of this machine.
        source: A name of `backbones.NAMED` or of an installed backbone, a file, a folder or a hub id.
        on_progress: Called with `Progress` of the download and `AddProgress` of the extraction.
        confirm_download: Asked before a download; None refuses.
        precision: Which of its published files are used.
        decoder: Decodes the library's files; a new `Fence` if None.

    Raises:
        WeightsMissing: The download was refused.
        WeightsError: The files are not those of a backbone, or damaged; nothing has changed.
        LibraryError: The library holds no media, only imported features.
    """
    with (
        store.writing()
    ):  # a library that is busy, or has no frames, is refused before anything is downloaded
        if store.only_imported():
            raise LibraryError(
                "the items of this library were imported as features: there are no frames to embed",
                NextStep("add the videos themselves", "add FOLDER"),
            )
    name = install(weights, source, on_progress, confirm_download, precision)
    expert = registry.load(name, weights)
    model = model_store.open_zero_shot(weights, name)
    with store.writing():
        drop_unseen(store, model, expert)
        if decoder is not None:
            return PreparedBackbone(name, model, extract_frames(store, expert, decoder, on_progress))
        with Fence() as fence:
            return PreparedBackbone(name, model, extract_frames(store, expert, fence, on_progress))


def install(
    weights: WeightStore,
    source: str,
    on_progress: ProgressCallback | None = None,
    confirm_download: ConfirmDownload | None = None,
    precision: Precision = "fp32",
) -> str:
    """Install a backbone, unless it is installed; its name."""
    plan = backbones.plan(weights, source, precision)
    if plan.name in (*registry.EMBEDDED, *registry.PUBLISHED):
        raise WeightsError(
            f"a backbone cannot be called {plan.name!r}, as an expert is",
            NextStep("give its folder another name"),
        )
    if plan.download_bytes and not (confirm_download and confirm_download(plan)):
        raise WeightsMissing(
            f"{plan.name} is not on this machine, and nothing is downloaded without your consent",
            NextStep("agree to the download", f"use {source} --yes", "Settings"),
        )
    return backbones.install(weights, plan, on_progress, export_backbone)


def extract_frames(
    store: LibraryStore, expert: Expert, decoder: MediaDecoder, on_progress: ProgressCallback | None
) -> list[str]:
    """Run the expert on every file that lacks its track; notes on those that cannot be read."""
    present = [file for file in store.files() if not is_imported(file.path)]
    usable = [file.path for file in present if unchanged(file)]
    report = add(
        store, usable, [expert], decoder, on_progress=on_progress, retry_failed=True, keep_clips=True
    )
    return _notes(report, len(present) - len(usable), expert.card.name)


def unchanged(file: StoredFile) -> bool:
    """Whether a file is on the disk as it was added."""
    try:
        now = Path(file.path).stat()
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) == (file.size, file.mtime_ns)


def drop_unseen(store: LibraryStore, model: Model, expert: Expert) -> None:
    """Remove what the model embedded of contents without the expert's track: it will be embedded again."""
    seen = {
        row.content
        for row in store.tracks()
        if (row.expert, row.fingerprint) == (expert.card.name, expert.fingerprint)
    }
    cache = embedding_cache(store, model)
    stale = {clip.id for clip in store.clips() if clip.content not in seen}
    if stale & set(cache.raw().ids.tolist()):
        cache.drop(stale)


def _notes(report: AddReport, absent: int, name: str) -> list[str]:
    notes = []
    if absent:
        notes.append(
            f"{absent} files have moved or changed since they were added; `wordreel add` updates them"
        )
    if report.failed:
        path, reason = report.failed[0]
        more = f" and {len(report.failed) - 1} more" if len(report.failed) > 1 else ""
        notes.append(f"{name} could not embed {path} ({reason}){more}: searched without its pictures")
    return notes
