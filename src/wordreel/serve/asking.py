"""A search request from its words to its answer; all of it but the encoding runs in a search thread."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from wordreel.errors import QueryError
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit
from wordreel.search.like import like
from wordreel.search.scoring import PLAIN
from wordreel.search.then import then
from wordreel.serve import schemas, view
from wordreel.serve.live import Snapshot
from wordreel.serve.problems import Problem, with_next_step
from wordreel.serve.service import Service
from wordreel.types import Float32


class Clock:
    """Where the time of one request went."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self.encode = self.queue = 0.0

    def lap(self) -> float:
        now = time.perf_counter()
        since, self._last = now - self._last, now
        return since

    def took(self, service: Service) -> schemas.TimingModel:
        search = self.queue + self.lap()
        total = time.perf_counter() - self._began
        service.metrics.encode_seconds.observe(self.encode)
        service.metrics.search_seconds.observe(search)
        return schemas.TimingModel(
            encode_ms=round(self.encode * 1e3, 3),
            search_ms=round(search * 1e3, 3),
            queue_ms=round(self.queue * 1e3, 3),
            total_ms=round(total * 1e3, 3),
        )


def check_question(asked: schemas.SearchRequest) -> None:
    """Exactly one question, and only options that go with it."""
    given = [name for name in ("text", "image", "like") if getattr(asked, name) is not None]
    if len(given) != 1:
        raise Problem(422, "bad_query", "ask with exactly one of text, image and like", "text")
    if asked.then is not None and asked.text is None:
        raise Problem(422, "bad_query", "then goes with text: say what comes first", "then")
    if asked.then is not None and asked.moments:
        raise Problem(
            422, "bad_query", "then finds one pair of moments in each video; leave out moments", "moments"
        )


def texts_of(asked: schemas.SearchRequest) -> list[str]:
    return [text for text in (asked.text, asked.then) if text is not None]


def search(service: Service, asked: schemas.SearchRequest, clock: Clock) -> bytes:
    """The answer as JSON."""
    clock.queue = clock.lap()
    snapshot = service.live.now
    filters = filters_of(asked)
    if asked.text is None:
        found, norm, note, weights = _look_alikes(service, snapshot, asked, filters), "none", "", None
    else:
        found, norm, note = _worded(snapshot, asked, filters)
        weights = weights_of(snapshot, asked.text)
    response = schemas.SearchResponse(
        query=asked.model_dump(mode="json", exclude_defaults=True),
        norm=norm,
        note=note,
        total_estimate=snapshot.passing(filters),
        hits=view.shown(snapshot.searcher, found, weights, service.uploaded),
        took=clock.took(service),
    )
    return response.model_dump_json().encode()


def compare(service: Service, asked: schemas.SearchRequest, clock: Clock) -> bytes:
    """The same question ranked plainly and with a bank."""
    clock.queue = clock.lap()
    snapshot = service.live.now
    filters, text = filters_of(asked), asked.text or ""
    named = asked.model_copy(update={"norm": _bank_norm(snapshot, asked)})
    corrected, norm, note = _worded(snapshot, named, filters)
    plain, _, _ = _worded(snapshot, asked.model_copy(update={"norm": "none", "beta": None}), filters)
    weights = weights_of(snapshot, text)
    return (
        schemas.CompareResponse(
            plain=view.shown(snapshot.searcher, plain, weights, service.uploaded),
            normalised=view.shown(snapshot.searcher, corrected, weights, service.uploaded),
            norm=norm,
            note=note,
            took=clock.took(service),
        )
        .model_dump_json()
        .encode()
    )


def filters_of(asked: schemas.FilterFields) -> Filters:
    return Filters(
        None if asked.folder is None else Path(asked.folder),
        asked.after,
        asked.before,
        asked.min_duration,
        asked.max_duration,
        asked.has_speech,
        asked.has_text,
        asked.expert,
        asked.kind,
    )


def weights_of(snapshot: Snapshot, text: str) -> Float32:
    return np.asarray(snapshot.searcher.model.encode([text.strip()])[0].weights, np.float32)


def _bank_norm(snapshot: Snapshot, asked: schemas.SearchRequest) -> str:
    """What to compare plain ranking with: what `auto` would use, or the common choice where it is plain."""
    if asked.norm != "auto":
        return asked.norm
    chosen = snapshot.choose("auto", asked.bank, asked.beta)
    return "auto" if chosen.norm is not PLAIN else "dis"


def _worded(snapshot: Snapshot, asked: schemas.SearchRequest, filters: Filters) -> tuple[list[Hit], str, str]:
    choice = snapshot.choose(asked.norm, asked.bank, asked.beta)
    note = with_next_step(choice.note, choice.next_step)
    least, text = asked.min_confidence, asked.text or ""
    if asked.then is not None:
        pairs = then(
            snapshot.searcher, text, asked.then, asked.limit, filters, choice.norm, choice.confidence, least,
            asked.offset,
        )  # fmt: skip
        return list(pairs), choice.norm.label, note
    found = snapshot.searcher.search(
        text, asked.limit, filters, asked.moments, choice.norm, choice.confidence, least, asked.offset
    )
    return found, choice.norm.label, note


def _look_alikes(
    service: Service, snapshot: Snapshot, asked: schemas.SearchRequest, filters: Filters
) -> list[Hit]:
    if asked.min_confidence > 0:
        raise QueryError("look-alikes have no confidence; leave min_confidence out")
    snapshot.check()
    model = snapshot.searcher.model
    if asked.image is not None:
        sample = service.samples.outside(model, asked.image, service.uploads.find(asked.image))
    elif asked.like is not None:
        sample = service.samples.known(model, asked.like.content, asked.like.start, asked.like.end)
    else:
        raise QueryError("nothing was asked")
    return list(like(snapshot.searcher, sample, asked.offset + asked.limit, filters)[asked.offset :])
