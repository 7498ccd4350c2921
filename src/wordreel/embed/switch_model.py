"""`wordreel use`: let another model answer. The library is embedded first and switched last.

A CLIP-like backbone is installed, and embeds the frames of every video, before that. Searches go on with the
previous model until the last step. Killed at any moment, the same call resumes: the download, the conversion
and each video are steps that are done or not.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wordreel.backbones import installed as backbones
from wordreel.backbones.installed import InstallPlan, Precision
from wordreel.catalogue.paths import is_imported
from wordreel.catalogue.records import StoredFile
from wordreel.catalogue.store import MODEL_SETTING, SOURCE_SETTING, LibraryStore
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.embed.embedding_cache import EmbeddingCache, caches, read_manifest
from wordreel.errors import LibraryError, NextStep, WeightsError, WeightsMissing, WordreelError
from wordreel.experts import registry
from wordreel.experts.base import Expert
from wordreel.ingest.add import add
from wordreel.ingest.add_report import AddReport
from wordreel.media import Fence
from wordreel.models import model_store
from wordreel.models.base import CheckpointModel, Model
from wordreel.models.laboratory import ConversionOptions, convert_published, export_backbone, is_clip
from wordreel.progress import ProgressCallback
from wordreel.runtime.store import WeightStore

CONVERTED = ".converted"  # folder of a library that holds a checkpoint while it is converted


@dataclass(frozen=True)
class UseResult:
    """The model now in use; `embedded` clips were new to it, `notes` are for the owner to read."""

    name: str
    fingerprint: str
    embedded: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelRow:
    """A model that a library can use, or embeddings of one that it no longer has (without a name)."""

    name: str
    fingerprint: str  # of built-in models without their weights: their name
    in_use: bool
    embedded: int  # clips
    clips: int
    experts: tuple[str, ...]


def use(
    store: LibraryStore,
    weights: WeightStore,
    name_or_path: str,
    on_progress: ProgressCallback | None = None,
    *,
    conversion: ConversionOptions | None = None,
    confirm_download: ConfirmDownload | None = None,
    precision: Precision = "fp32",
    before_switch: Callable[[Model], None] | None = None,
) -> tuple[Model, UseResult]:
    """Embed the library with a model from its stored tracks, then make it the library's model.

    Interrupted or killed, the old model stays in use, and the same call resumes.

    Args:
        store: The library.
        weights: The weights of this machine.
        name_or_path: "joint", a backbone (its name, a file, a folder or a hub id), a folder with a
            checkpoint, a published checkpoint of CE, MoEE or MMT, or the name or fingerprint of a model that
            the library has.
        on_progress: Called with the progress of a download, of the extraction and of embedding.
        conversion: How to convert a published checkpoint.
        confirm_download: Asked before a backbone is downloaded; None refuses.
        precision: Which of a backbone's published files are used.
        before_switch: Called with a backbone's model when the library is embedded, before it is in use.
    """
    model: Model
    notes: list[str]
    if name_or_path not in model_store.BUILT_IN and _is_backbone(store, weights, name_or_path):
        if conversion not in (None, ConversionOptions()):
            raise WeightsError(
                f"{name_or_path} is a backbone; a configuration, mode, name or text encoder can be given for "
                "checkpoints of CE, MoEE and MMT"
            )
        _check_frames(store)
        key = install(weights, name_or_path, on_progress, confirm_download, precision)
        model = model_store.open_zero_shot(weights, key)
        with store.writing():
            notes = _extract_frames(store, model, registry.load(key, weights), on_progress)
        embedded = switch(store, model, key, on_progress, before_switch)
        store.set_setting(SOURCE_SETTING, backbones.installed(weights)[key].source)
        return model, UseResult(model.name, model.fingerprint, embedded, tuple(notes))
    with store.writing():
        if name_or_path in model_store.BUILT_IN:
            notes, model = [], model_store.open_model(store, weights, name_or_path)
        elif (path := Path(name_or_path).expanduser()).is_file():
            with _converted(store, path, conversion or ConversionOptions()) as folder:
                notes, model = _save(store, weights, model_store.open_checkpoint(folder, weights))
        else:
            notes, model = _save(store, weights, _find_model(store, weights, name_or_path))
        key = name_or_path if name_or_path in model_store.BUILT_IN else model.fingerprint
        embedded = switch(store, model, key, on_progress)
        return model, UseResult(model.name, model.fingerprint, embedded, tuple(notes))


def _save(store: LibraryStore, weights: WeightStore, checkpoint: CheckpointModel) -> tuple[list[str], Model]:
    """Copy a checkpoint into the library; notes for the owner, and the library's copy."""
    notes = check_experts(store, checkpoint)
    if checkpoint.external_text:
        notes.append(
            f"its captions need {checkpoint.external_text}, which is not in its folder: leave it there"
        )
    return notes, model_store.save_model(store, checkpoint, weights)


@contextmanager
def _converted(store: LibraryStore, path: Path, options: ConversionOptions) -> Iterator[Path]:
    """Yield a published checkpoint as a checkpoint folder, for as long as the library copies it."""
    folder = store.path / CONVERTED
    shutil.rmtree(folder, ignore_errors=True)  # of a conversion that was killed
    try:
        convert_published(path, folder, options, lambda family, dims: library_names(store, family, dims))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def library_names(store: LibraryStore, family: str, dims: Mapping[str, int]) -> dict[str, str]:
    """Return a library's names for the experts of a published checkpoint of a family ("ce", "mmt", …).

    Imported features have the layout's name before theirs (`ce/audio`): the layout that has most of the
    experts in their sizes is taken, the family's own among equals.
    """
    held = store.track_dims()
    layouts = sorted({expert.partition("/")[0] for expert in held if "/" in expert} - {family})
    prefixes = [f"{family}/", *(f"{layout}/" for layout in layouts), ""]
    fit = {prefix: sum(held.get(prefix + name) == {dim} for name, dim in dims.items()) for prefix in prefixes}
    best = max(prefixes, key=lambda prefix: fit[prefix])  # the first of equals
    return {name: best + name for name in dims}


def switch(
    store: LibraryStore,
    model: Model,
    key: str,
    on_progress: ProgressCallback | None = None,
    before: Callable[[Model], None] | None = None,
) -> int:
    """Embed what the model has not embedded yet, and only then name it; the number of new clips."""
    with store.writing():
        try:
            embedded = embed_library(store, model, on_progress)
        except ValueError as error:
            raise WeightsError(f"the model {model.name!r} cannot embed this library: {error}") from error
        if before:
            before(model)
        store.set_setting(MODEL_SETTING, key)
    return embedded


def check_experts(store: LibraryStore, model: CheckpointModel) -> list[str]:
    """Say what a model will miss; raise where it would see nothing, or features of another shape."""
    dims = store.track_dims()
    wrong = {name: dim for name, dim in model.track_dims.items() if dims.get(name, {dim}) != {dim}}
    if wrong:
        sizes = "; ".join(
            f"{name} of {dim} numbers, where the library has {', '.join(map(str, sorted(dims[name])))}"
            for name, dim in wrong.items()
        )
        raise LibraryError(f"the model {model.name!r} was trained on other features: it takes {sizes}")
    read = model.track_experts if model.track_dims else ()
    missing = [name for name in read if name not in dims]
    if not missing:
        return []
    absent = f"this library has no {', '.join(missing)}"
    step = NextStep("add them", f"add FOLDER --experts {','.join(missing)}")
    if any("/" in name for name in missing):
        step = NextStep("import the features that the model was trained on", "import FOLDER")
    if dims and len(missing) == len(read):
        raise LibraryError(f"the model {model.name!r} would see nothing: {absent}", step)
    return [f"{absent}, which the model {model.name!r} reads; it does without. To {step.for_command_line()}"]


def models(store: LibraryStore, weights: WeightStore) -> list[ModelRow]:
    """List the built-in models, the installed backbones, the library's own, and others that embedded it."""
    used = model_store.in_use(store)
    known = (*model_store.BUILT_IN, *backbones.installed(weights))
    names = {_fingerprint_of(store, weights, name): name for name in known}
    print_used = next((key for key, name in names.items() if name == used), used)
    names |= {one.fingerprint: one.name for one in model_store.stored_models(store)}
    names |= {folder.name: "" for folder in caches(store) if folder.name not in names}
    clips = len(store.clip_ids())
    rows = []
    for fingerprint, name in names.items():
        experts, missing = _embedded(store, fingerprint, clips)
        chosen = fingerprint == print_used  # a checkpoint may be called as a built-in model is
        rows.append(ModelRow(name, fingerprint, chosen, clips - missing, clips, experts))
    return rows


def _embedded(store: LibraryStore, fingerprint: str, clips: int) -> tuple[tuple[str, ...], int]:
    """Return the rows of a model's embeddings, and how many clips have none."""
    manifest = next((read_manifest(f) for f in caches(store) if f.name == fingerprint), None)
    if manifest is None:
        return (), clips
    try:
        cache = EmbeddingCache(store, fingerprint, manifest.experts, manifest.dim)
        return manifest.experts, len(cache.missing())
    except LibraryError:  # damaged: as good as none
        return manifest.experts, clips


def _find_model(store: LibraryStore, weights: WeightStore, name_or_path: str) -> CheckpointModel:
    """Return the checkpoint in a folder, or one of the library's own by its name or fingerprint."""
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return model_store.open_checkpoint(model_store.find_checkpoint(path), weights)
    own = model_store.stored_models(store)
    matches = [one for one in own if name_or_path in (one.fingerprint, one.name)]
    if len(matches) == 1:
        return model_store.open_checkpoint(matches[0].folder, weights)
    if matches:
        which = ", ".join(one.fingerprint for one in matches)
        raise LibraryError(
            f"{len(matches)} models of this library are called {name_or_path!r}",
            NextStep(f"name one by its fingerprint: {which}", "use FINGERPRINT"),
        )
    raise _unknown(weights, name_or_path, [one.name for one in own])


def check_name(weights: WeightStore, name_or_path: str) -> None:
    """Refuse what names no model for a library that has none of its own, before the library is built."""
    known = name_or_path in model_store.BUILT_IN or Path(name_or_path).expanduser().exists()
    if not known and not backbones.is_backbone(weights, name_or_path):
        raise _unknown(weights, name_or_path, [])


def _unknown(weights: WeightStore, name_or_path: str, own: Sequence[str]) -> LibraryError:
    have = ", ".join([*model_store.BUILT_IN, *backbones.installed(weights), *own])
    return LibraryError(
        f"there is no model {name_or_path!r}: name a folder with a trained checkpoint, or one of {have}",
        NextStep("list the backbones that can be downloaded", "models"),
    )


def _is_backbone(store: LibraryStore, weights: WeightStore, name_or_path: str) -> bool:
    """Whether a backbone is named, and not one of the library's own models."""
    own = {part for one in model_store.stored_models(store) for part in (one.fingerprint, one.name)}
    if name_or_path in own or backbones.is_backbone(weights, name_or_path):
        return name_or_path not in own
    path = Path(name_or_path).expanduser()
    return path.exists() and is_clip(path)


def _fingerprint_of(store: LibraryStore, weights: WeightStore, name: str) -> str:
    """Return the fingerprint of a built-in model or a backbone; its name where its weights are not here."""
    try:
        return model_store.open_model(store, weights, name).fingerprint
    except WordreelError:
        return name


ConfirmDownload = Callable[[InstallPlan], bool]
"""Asked before anything is downloaded; False refuses."""


def _check_frames(store: LibraryStore) -> None:
    """Refuse a library that is busy, or has no frames, before anything is downloaded."""
    with store.writing():
        if store.only_imported():
            raise LibraryError(
                "the items of this library were imported as features: there are no frames to embed",
                NextStep("add the videos themselves", "add FOLDER"),
            )


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


def _extract_frames(
    store: LibraryStore, model: Model, expert: Expert, on_progress: ProgressCallback | None
) -> list[str]:
    """Run the expert on every file that lacks its track; return notes on those that cannot be read.

    What the model embedded of contents without the track is removed: it will be embedded again.
    """
    version = (expert.card.name, expert.fingerprint)
    seen = {row.content for row in store.tracks() if (row.expert, row.fingerprint) == version}
    cache = embedding_cache(store, model)
    stale = {clip.id for clip in store.clips() if clip.content not in seen}
    if stale & set(cache.raw().ids.tolist()):
        cache.drop(stale)
    files = [file for file in store.files() if not is_imported(file.path)]
    usable = [file.path for file in files if _is_unchanged(file)]
    with Fence() as fence:
        report = add(
            store, usable, [expert], fence, on_progress=on_progress, retry_failed=True, keep_clips=True
        )
    return _notes(report, len(files) - len(usable), expert.card.name)


def _is_unchanged(file: StoredFile) -> bool:
    """Return whether a file is on the disk as it was added."""
    try:
        now = Path(file.path).stat()
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) == (file.size, file.mtime_ns)


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
