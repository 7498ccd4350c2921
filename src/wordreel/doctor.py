"""Health checks: is everything installed that searching needs, and do the embeddings make sense?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING

from wordreel.catalogue.connection import NAME
from wordreel.embed.embedding_cache import Gallery
from wordreel.errors import LibraryError, MediaError, NextStep, WordreelError
from wordreel.experts import registry
from wordreel.maintain.wrong_values import degenerate_embeddings
from wordreel.media.hardware import DEVICES, VARIABLE, process_devices
from wordreel.media.types import Limits
from wordreel.media.worker_process import WorkerProcess
from wordreel.runtime import weight_table as weights
from wordreel.runtime.store import WeightStore

if TYPE_CHECKING:
    from wordreel.library import Library

PACKAGES = ("av", "faster-whisper", "numpy", "onnx", "onnxruntime", "opencv-python-headless", "rapidocr")
MIN_FREE_BYTES = 2 * 2**30
REINDEX = NextStep("embed the library again", "reindex")
DRIVER = NextStep("check the driver of the GPU, and that its memory is free")
NO_DEVICE = NextStep(f"check the driver of the GPU, or set {VARIABLE} to off")
DECODING = "video decoding"
FETCH = NextStep("fetch the weights", "weights fetch")


@dataclass(frozen=True)
class Finding:
    """The result of one check. `state` is "ok", "note" or "error"."""

    state: str
    what: str
    detail: str
    next_step: NextStep | None = None


def run_checks(library: Path) -> Iterator[Finding]:
    """Check the environment, the weights, the text tower and the library, in this order.

    Args:
        library: The folder of the library; it need not exist.

    Yields:
        One `Finding` per check, as soon as it is done.
    """
    store = WeightStore()
    yield from _environment(store.root)
    yield from _decoding()
    yield from _weights(store)
    yield from _text_tower(store)
    yield from _library(library, store)


def _environment(root: Path) -> Iterator[Finding]:
    yield Finding("ok", "python", sys.version.split()[0])
    for package in PACKAGES:
        try:
            yield Finding("ok", package, version(package))
        except PackageNotFoundError:
            yield Finding("error", package, "not installed", NextStep(f"run `pip install {package}`"))
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free = disk_usage(existing).free
    enough = free > MIN_FREE_BYTES
    step = None if enough else NextStep("set WORDREEL_WEIGHTS to a folder on a larger disk")
    detail = f"{free / 2**30:.1f} GiB in {root}"
    yield Finding("ok" if enough else "note", "free space for weights", detail, step)


def _decoding() -> Iterator[Finding]:
    """Decode a test film on every hardware decoder that is there, inside the fence."""
    try:
        devices = process_devices()
    except WordreelError as error:
        yield Finding("error", DECODING, error.message, error.next_step)
        return
    if devices.setting == "off":
        yield Finding("ok", DECODING, f"in software, because {VARIABLE} is off")
        return
    if not devices.usable():
        titles = ", ".join(device.title for device in DEVICES.values())
        yield Finding("ok", DECODING, f"in software: this machine has no hardware decoder ({titles})")
    for name in devices.usable():
        title = DEVICES[name].title
        try:
            WorkerProcess(Limits(), DEVICES[name]).close()
        except MediaError as error:
            detail = f"in software: {title} could not be used, {error.message}"
            yield Finding("note", DECODING, detail, NO_DEVICE)
            continue
        which = "all videos it can decode" if devices.forced else "large videos"
        yield Finding("ok", DECODING, f"{title} ({name}) for {which}, software for the others")
        return


def _weights(store: WeightStore) -> Iterator[Finding]:
    for name, card in registry.cards(store).items():
        bad = {weight: store.status(weight) for weight in card.weights if not store.has(weight)}
        if not bad:
            yield Finding("ok", f"expert {name}", "weights are installed and undamaged")
            continue
        state = "error" if card.default else "note"
        detail = ", ".join(f"{weight} {status}" for weight, status in bad.items())
        step = weights.find(next(iter(bad))).next_step(again="corrupt" in bad.values())
        yield Finding(state, f"expert {name}", detail, step)


def _text_tower(store: WeightStore) -> Iterator[Finding]:
    """Check that the text tower tells a cat from a lorry; without that no search can be right."""
    from wordreel.models.joint.text_tower import TextTower

    try:
        tower = TextTower(store.root)
        cat, kitten, lorry = tower.encode(["a cat", "a kitten", "a lorry on the road"])
    except WordreelError as error:
        yield Finding("error", "text tower", error.message, error.next_step)
        return
    unused = "could not" in tower.device
    yield Finding("note" if unused else "ok", "networks", f"run {tower.device}", DRIVER if unused else None)
    near, far = float(cat @ kitten), float(cat @ lorry)
    if near > far + 0.2:
        yield Finding("ok", "text tower", f"cat–kitten {near:.2f}, cat–lorry {far:.2f}")
    else:
        yield Finding(
            "error",
            "text tower",
            f"cannot distinguish words: cat–kitten {near:.2f}, cat–lorry {far:.2f}",
            NextStep("install wordreel again"),
        )


def _library(path: Path, weight_store: WeightStore) -> Iterator[Finding]:
    from wordreel.banks.search_index import index_is_stale
    from wordreel.embed.embed_library import embedding_cache
    from wordreel.library import Library
    from wordreel.maintain.verify import verify
    from wordreel.search.snapshot import index_cache, open_index

    if not (path / NAME).is_file():
        step = NextStep("add a folder of videos", "add FOLDER")
        yield Finding("note", "library", f"none at {path}", step)
        return
    try:
        opened = Library(path, create=False, weights=weight_store)
        store = opened.store
        wrong = [problem for problem in verify(store, deep=False) if not problem.note]
    except LibraryError as error:
        yield Finding("error", "library", error.message, error.next_step)
        return
    stats = store.stats()
    detail = f"{stats.files} files, {stats.clips} clips, {stats.failures} failures"
    if wrong:
        yield Finding("error", "library", f"{len(wrong)} problems", NextStep("list them", "verify"))
    else:
        yield Finding("ok", "library", detail)
    try:
        cache = embedding_cache(store, opened.model)
    except WordreelError as error:
        yield Finding("error", "embeddings", error.message, error.next_step or FETCH)
        return
    if (eyes := opened.model.eyes) and (count := store.count_without(eyes)):
        step = NextStep("add the same folders again", "add FOLDER")
        yield Finding("note", f"expert {eyes}", f"{count} items were added without it", step)
    missing = len(cache.missing())
    if missing:
        yield Finding("note", "embeddings", f"{missing} clips are not embedded yet", REINDEX)
    gallery, _ = cache.open()
    yield from _server(opened)
    index = open_index(gallery, index_cache(store, opened.model, gallery))
    if index.built is None and index_is_stale(store, opened.model):
        yield Finding("note", "index", f"{index}: the index of a library of this size is missing", REINDEX)
    elif len(gallery):
        yield Finding("ok", "index", str(index))
    yield from _embeddings(opened, gallery)


def _server(library: Library) -> Iterator[Finding]:
    """Check the vector server that searches the library, if one does."""
    try:
        status = library.index_status()
    except WordreelError as error:
        yield Finding("error", "index server", error.message, error.next_step)
        return
    if status is None:
        return
    recall = "recall not measured" if status.recall is None else str(status.recall)
    kind = "exact" if status.exact else f"approximate, {recall}"
    detail = f"{status.address}, {status.engine}: {status.clips} clips, {kind}"
    if status.complete:
        yield Finding("ok", "index server", detail)
    else:
        step = NextStep("send it what is missing", f"index {status.address}")
        yield Finding("note", "index server", f"{detail}; not all of them are there", step)


def _embeddings(library: Library, gallery: Gallery) -> Iterator[Finding]:
    """Embeddings that cannot be right: an expert whose output never varies finds nothing."""
    wrong = degenerate_embeddings(library.store, library.model)
    for expert, problem in wrong:
        yield Finding("error", f"embeddings of {expert}", problem.what, problem.next_step)
    faulty = {expert for expert, _ in wrong}
    for number, expert in enumerate(library.model.experts):
        count = int(gallery.available[gallery.live_rows, number].sum())
        if count and expert not in faulty:
            yield Finding("ok", f"embeddings of {expert}", f"{count} vectors")
