"""`wordreel tune`: adapt a library's model to its captions, and store the result if it is better.

Of the default model, the last matrices and a table of words are fitted; of a backbone's, the weights of the
rows beside it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import check_model_fits, embed_library, embedding_cache
from wordreel.embed.use import use
from wordreel.errors import LibraryError, NextStep
from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune.cross_validation import CrossValidation, cross_validate, without_idle_words
from wordreel.lab.training.tune.match_captions import MatchedCaptions, match
from wordreel.lab.training.tune.row_weights import RowChoice, choose_row_weights, gather_rows
from wordreel.lab.training.tune.tune_data import gather
from wordreel.models import model_store
from wordreel.models.base import Model
from wordreel.models.reel.checkpoint import TUNED, export
from wordreel.models.reel.model import Reel
from wordreel.models.reel.own_words import LIST, TABLE
from wordreel.models.weighted import BACKBONE, read_card, write_weights
from wordreel.models.zero_shot import ZeroShot
from wordreel.progress import ProgressCallback
from wordreel.runtime.store import WeightStore
from wordreel.search.searcher import Searcher

NAME = "reel-tuned"


@dataclass(frozen=True)
class TuneResult:
    """The result of tuning. `model` and `fingerprint` are empty where nothing was changed."""

    better: bool
    model: str
    fingerprint: str
    embedded: int  # clips
    videos: int  # with captions
    captions: int
    gallery: int  # videos that compete, with captions or without
    missing: tuple[str, ...]
    blank: int
    left: int
    before: dict[str, float]
    after: dict[str, float]
    gain: float  # in R@1 + R@5 + R@10
    low: float
    high: float
    p_value: float
    strengths: tuple[float, ...]
    words: int  # of the user's own that were learned
    everyday_kept: float
    seconds: float
    weights: dict[str, float] = field(default_factory=dict)  # of the rows beside a backbone


def tune(
    store: LibraryStore,
    weights: WeightStore,
    captions: Mapping[str, Sequence[str]],
    *,
    seed: int = 0,
    dry_run: bool = False,
    on_progress: ProgressCallback | None = None,
) -> tuple[Model | None, TuneResult]:
    """Measure what tuning gains on held-out captions; store and use the tuned model if it gains.

    It starts from the model that ships, or from the backbone in use, even if the library has a tuned one.
    Stopped or killed at any moment, the library continues with the model it had, and the measurements are
    lost: the same call starts over.
    """
    started = time.monotonic()
    settings = TuneSettings(seed=seed)
    backbone = check_model(store)
    if not dry_run:
        with store.writing():  # an error about permissions comes before the work, not after
            pass
    matched = match(store.files(), captions, settings.seed)
    attempt = (
        _tune_heads(store, weights, matched, settings, on_progress)
        if backbone is None
        else (
            _tune_rows(store, model_store.open_zero_shot(weights, backbone), matched, settings, on_progress)
        )
    )
    name, measured = "", attempt.measured
    model, used = None, None
    if measured.better and not dry_run:
        name = free_name(store, attempt.card, attempt.name)
        with TemporaryDirectory() as folder:
            attempt.write(Path(folder) / model_store.WEIGHTS, {**attempt.card, "name": name})
            model, used = use(store, weights, folder, on_progress)
    return model, TuneResult(
        better=measured.better,
        model=name,
        fingerprint=used.fingerprint if used else "",
        embedded=used.embedded if used else 0,
        videos=attempt.videos,
        captions=attempt.captions,
        gallery=attempt.gallery,
        missing=matched.missing,
        blank=matched.blank,
        left=matched.left,
        before=_figures(measured.before),
        after=_figures(measured.after),
        gain=round(measured.gain.difference, 2),
        low=round(measured.gain.low, 2),
        high=round(measured.gain.high, 2),
        p_value=measured.gain.p_value,
        strengths=attempt.strengths,
        words=attempt.words,
        everyday_kept=round(measured.everyday_kept, 3),
        seconds=round(time.monotonic() - started, 1),
        weights=attempt.weights,
    )


@dataclass(frozen=True, eq=False)
class _Attempt:
    """What was fitted and measured; `write` stores it in a file with this card."""

    measured: CrossValidation | RowChoice
    videos: int
    captions: int
    gallery: int
    card: dict[str, Any]
    name: str
    write: Callable[[Path, dict[str, Any]], object]
    strengths: tuple[float, ...] = ()
    words: int = 0
    weights: dict[str, float] = field(default_factory=dict)


def _tune_heads(
    store: LibraryStore,
    weights: WeightStore,
    matched: MatchedCaptions,
    settings: TuneSettings,
    on_progress: ProgressCallback | None,
) -> _Attempt:
    """Fit the last matrices of the default model and a table of words."""
    base = Reel(weights)
    searcher = _open_embedded(store, base, on_progress)
    data = gather(searcher, base, matched.texts, settings.seed, on_progress)
    result = cross_validate(data, settings, on_progress)
    heads, words = without_idle_words(result.heads, data.words)

    def write(path: Path, card: dict[str, Any]) -> None:
        tower = heads.into(base.checkpoint.tower)
        if not words:
            del tower[TABLE]
        export(path, replace(base.checkpoint, tower=tower, card=card))

    return _Attempt(
        measured=result,
        videos=data.captioned,
        captions=len(data.owner),
        gallery=data.videos,
        card=_card(base, words, matched, result, settings),
        name=NAME,
        write=write,
        strengths=result.strengths,
        words=len(words),
    )


def _tune_rows(
    store: LibraryStore,
    base: ZeroShot,
    matched: MatchedCaptions,
    settings: TuneSettings,
    on_progress: ProgressCallback | None,
) -> _Attempt:
    """Choose the weights of the rows beside a backbone."""
    searcher = _open_embedded(store, base, on_progress)
    data = gather_rows(searcher, base, matched.texts, settings.seed, on_progress)
    chosen = choose_row_weights(data, base, settings, on_progress)
    card = {
        BACKBONE: base.backbone,
        "captions": _digest(matched),
        "videos": len(matched.texts),
        "before": _figures(chosen.before),
        "after": _figures(chosen.after),
        "weights": chosen.weights,
    }
    return _Attempt(
        measured=chosen,
        videos=data.videos,
        captions=len(data.owner),
        gallery=data.gallery,
        card=card,
        name=f"{base.backbone}-tuned",
        write=lambda path, named: write_weights(path, named, chosen.weights),
        weights=chosen.weights,
    )


def _open_embedded(store: LibraryStore, base: Model, on_progress: ProgressCallback | None) -> Searcher:
    check_model_fits(store, base)
    if embedding_cache(store, base).missing():
        embed_library(store, base, on_progress)
    return Searcher.open(store, base)


def check_model(store: LibraryStore) -> str | None:
    """The backbone to tune, None for the default model; one that was tuned before makes way."""
    key = model_store.in_use(store)
    own = next((one for one in model_store.stored_models(store) if one.fingerprint == key), None)
    if key == model_store.DEFAULT or (own is not None and TUNED in own.facts):
        return None
    if own is None and key not in model_store.BUILT_IN:
        return key
    if own is not None and (card := read_card(own.folder / model_store.WEIGHTS)) is not None:
        return str(card[BACKBONE])
    name = own.name if own is not None else key
    raise LibraryError(
        f"this library uses the model {name!r}, and tuning starts from the default one or a backbone",
        NextStep("use the default model first", f"use {model_store.DEFAULT}"),
    )


def free_name(store: LibraryStore, card: Mapping[str, Any] | None = None, wanted: str = NAME) -> str:
    """`reel-tuned`, or the next number if the library has one of that name.

    A model of the same captions with the same settings keeps its name: it is the same model again,
    perhaps of a tuning that was killed before the library was embedded.
    """
    taken = {one.name: _unnamed(one.facts) for one in model_store.stored_models(store)}
    mine = None if card is None else _unnamed(json.loads(json.dumps(card)))
    number = 1
    while (name := wanted if number == 1 else f"{wanted}-{number}") in taken and taken[name] != mine:
        number += 1
    return name


def _unnamed(card: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in card.items() if key not in ("name", "format")}


def _card(
    base: Reel,
    words: tuple[str, ...],
    matched: MatchedCaptions,
    result: CrossValidation,
    settings: TuneSettings,
) -> dict[str, Any]:
    """What the file says of itself: no clock and no paths, so that the same captions make the same file."""
    about = {key: value for key, value in base.checkpoint.card.items() if key not in ("format", "validation")}
    tuned = {
        "from": base.checkpoint.digest,
        "captions": _digest(matched),
        "videos": len(matched.texts),
        "settings": asdict(settings),
        "before": _figures(result.before),
        "after": _figures(result.after),
        "strengths": result.strengths,
    }
    return {**about, LIST: words, TUNED: tuned}


def _digest(matched: MatchedCaptions) -> str:
    return hashlib.sha256(json.dumps(sorted(matched.texts.items())).encode()).hexdigest()


def _figures(metrics: Any) -> dict[str, float]:
    return {
        "R1": round(metrics.r1, 2),
        "R5": round(metrics.r5, 2),
        "R10": round(metrics.r10, 2),
        "MdR": float(metrics.median_rank),
    }
