"""A check-up: is everything here that searching needs, and does what comes out make sense?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import disk_usage

import numpy as np

from wordreel.errors import LibraryError, WordreelError
from wordreel.experts import registry
from wordreel.library.catalogue import NAME
from wordreel.library.embeddings import Gallery
from wordreel.weights.store import WeightStore

PACKAGES = ("av", "faster-whisper", "numpy", "onnx", "onnxruntime", "opencv-python-headless", "rapidocr")
LEAST_SPACE = 2 * 2**30


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `state` is "ok", "note" or "error"; `advice` names the next step."""

    state: str
    what: str
    detail: str
    advice: str = ""


def examine(library: Path) -> Iterator[Finding]:
    """Look at the environment, the weights, the sentence encoder and the library, in this order."""
    store = WeightStore()
    yield from _environment(store.root)
    yield from _weights(store)
    yield from _sentences(store)
    yield from _library(library, store)


def _environment(root: Path) -> Iterator[Finding]:
    yield Finding("ok", "python", sys.version.split()[0])
    for package in PACKAGES:
        try:
            yield Finding("ok", package, version(package))
        except PackageNotFoundError:
            yield Finding("error", package, "not installed", f"pip install {package}")
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free = disk_usage(existing).free
    state, advice = ("ok", "") if free > LEAST_SPACE else ("note", "set WORDREEL_WEIGHTS to a larger disk")
    yield Finding(state, "free space for weights", f"{free / 2**30:.1f} GiB in {root}", advice)


def _weights(store: WeightStore) -> Iterator[Finding]:
    for name, card in registry.cards().items():
        bad = {weight: store.status(weight) for weight in card.weights if not store.has(weight)}
        if not bad:
            yield Finding("ok", f"expert {name}", "weights are here and whole")
            continue
        state = "error" if card.default else "note"
        detail = ", ".join(f"{weight} {status}" for weight, status in bad.items())
        yield Finding(state, f"expert {name}", detail, "`wordreel experts` says how to get it")


def _sentences(store: WeightStore) -> Iterator[Finding]:
    """The encoder must tell a cat from a lorry, or nothing that follows can be right."""
    from wordreel.nets.sentences import SentenceEncoder

    try:
        cat, kitten, lorry = SentenceEncoder(store).encode(["a cat", "a kitten", "a lorry on the road"])
    except WordreelError as error:
        yield Finding("error", "sentence encoder", str(error), "wordreel weights fetch")
        return
    near, far = float(cat @ kitten), float(cat @ lorry)
    if near > far + 0.2:
        yield Finding("ok", "sentence encoder", f"cat–kitten {near:.2f}, cat–lorry {far:.2f}")
    else:
        yield Finding(
            "error",
            "sentence encoder",
            f"cannot tell words apart: cat–kitten {near:.2f}, cat–lorry {far:.2f}",
            "wordreel weights fetch --again minilm",
        )


def _library(path: Path, weights: WeightStore) -> Iterator[Finding]:
    from wordreel.api import Library
    from wordreel.library.verify import verify
    from wordreel.search.embedding import embedding_cache

    if not (path / NAME).is_file():
        yield Finding("note", "library", f"none at {path}", "make one with `wordreel add FOLDER`")
        return
    try:
        opened = Library(path, create=False, weights=weights)
        store = opened.store
        wrong = [problem for problem in verify(store, deep=False) if not problem.note]
    except LibraryError as error:
        yield Finding("error", "library", str(error))
        return
    stats = store.stats()
    detail = f"{stats.files} files, {stats.clips} clips, {stats.failures} failures"
    if wrong:
        yield Finding("error", "library", f"{len(wrong)} things are wrong", "wordreel verify")
    else:
        yield Finding("ok", "library", detail)
    try:
        cache = embedding_cache(store, opened.model)
    except WordreelError as error:
        yield Finding("error", "embeddings", str(error), "wordreel weights fetch")
        return
    missing = len(cache.missing())
    if missing:
        yield Finding("note", "embeddings", f"{missing} clips are not embedded yet", "wordreel reindex")
    yield from degenerate(cache.load(), cache.experts)


def degenerate(gallery: Gallery, experts: tuple[str, ...]) -> Iterator[Finding]:
    """Constant or duplicated vectors: an expert that says the same of everything finds nothing."""
    for place, expert in enumerate(experts):
        rows = np.asarray(gallery.vectors[gallery.available[:, place], place])
        if len(rows) < 2:
            continue
        if not np.isfinite(rows).all():
            yield Finding(
                "error", f"embeddings of {expert}", "hold values that are not numbers", "wordreel reindex"
            )
            continue
        same = len(rows) - len(np.unique(rows, axis=0))
        flat = int((rows.std(axis=1) == 0).sum())
        if flat:
            yield Finding(
                "error", f"embeddings of {expert}", f"{flat} of {len(rows)} are constant", "wordreel reindex"
            )
        elif same > len(rows) // 2:
            yield Finding(
                "error",
                f"embeddings of {expert}",
                f"{same} of {len(rows)} are copies of another",
                "wordreel verify",
            )
        else:
            yield Finding("ok", f"embeddings of {expert}", f"{len(rows)} vectors, {same} of them duplicates")
