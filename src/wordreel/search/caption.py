"""Video to text: which captions describe a video best.

A caption scores as its best item (a clip, or the whole), by the similarity of search without lexical bonus.

Here the queries are videos and the gallery is the captions (see `hubness.direction`), so the bank of a
normalisation is the library's other videos. It lowers captions that fit every video.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordreel.catalogue.banks import normalize_queries
from wordreel.errors import DatasetError, NextStep, QueryError
from wordreel.hubness import METHODS, Direction, Method, choose_beta_unlabelled, make_method, query_rows
from wordreel.hubness import ranking_scores as rows_to_sort
from wordreel.hubness.beta import PUBLISHED
from wordreel.index.exact import ExactIndex
from wordreel.index.topk import topk_ids
from wordreel.models.similarity import mixture
from wordreel.search.explain import expert_reasons, strongest_first
from wordreel.search.hits import CaptionMatch, Reason, within
from wordreel.search.query import check_limit
from wordreel.search.segments import segment_max, take_segments
from wordreel.search.video_query import VideoQuery
from wordreel.types import Float32, Float64, QueryEmbedding
from wordreel.util import text_files as json_address
from wordreel.util.text_files import column_indices, pick_cells, read_lines, read_rows

if TYPE_CHECKING:
    from wordreel.search.searcher import Searcher


BATCH = 256  # captions at once
BANK = 4_000  # videos of a bank, evenly spread over the library
LONGEST = 10_000  # characters of a caption
NORMS = tuple(name for name, kind in METHODS.items() if not (kind.transductive or name.startswith("dual-")))


def rank_captions(
    searcher: Searcher,
    video: VideoQuery,
    texts: Sequence[str],
    limit: int = 5,
    norm: str = "none",
    beta: float | None = None,
) -> list[CaptionMatch]:
    """Return the captions that fit a video best, best first; of equals the earlier one."""
    _check(texts, limit, norm)
    queries = _encode(searcher, texts)
    items = _similarities(queries, video)  # [captions, clips]
    plain = items.max(axis=1)
    scores: Float64 = plain.astype(np.float64)
    label = "none"
    if norm != "none":
        scores, label = _normalised(searcher, video, queries, plain, norm, beta)
    best = topk_ids(scores[None], limit)[0].tolist()
    pieces = video.pieces()
    moments = [video.clips[pieces[int(items[number, pieces].argmax())]] for number in best]
    reasons = [_reasons(searcher, video, queries[number], int(items[number].argmax())) for number in best]
    return [
        CaptionMatch(
            rank=rank,
            score=float(scores[number]),
            text=texts[number],
            start=moment.start,
            end=moment.end,
            why=within(why, moment.start, moment.end),
            norm=label,
        )
        for rank, (number, moment, why) in enumerate(zip(best, moments, reasons, strict=True), start=1)
    ]


def _check(texts: Sequence[str], limit: int, norm: str) -> None:
    check_limit(limit, "captions")
    if not texts:
        raise QueryError("there are no captions to choose from; give at least one")
    for text in texts:
        if not text.strip():
            raise QueryError("a caption is empty; leave it out")
        if len(text) > LONGEST:
            raise QueryError(f"a caption has {len(text)} characters; {LONGEST} are allowed")
    if norm not in NORMS:
        why = "needs more than a bank of videos" if norm in METHODS else "is not known"
        raise QueryError(f"the normalisation {norm!r} {why}; choose one of {', '.join(NORMS)}")


def _encode(searcher: Searcher, texts: Sequence[str]) -> list[QueryEmbedding]:
    words = [text.strip() for text in texts]
    return [
        query
        for start in range(0, len(words), BATCH)
        for query in searcher.model.encode(words[start : start + BATCH])
    ]


def _similarities(queries: Sequence[QueryEmbedding], video: VideoQuery) -> Float32:
    vectors, weights = np.stack([q.vectors for q in queries]), np.stack([q.weights for q in queries])
    return mixture(vectors, weights, video.vectors, video.available)


def _normalised(
    searcher: Searcher,
    video: VideoQuery,
    queries: Sequence[QueryEmbedding],
    plain: Float32,
    norm: str,
    beta: float | None,
) -> tuple[Float64, str]:
    """Return the video's row of scores, corrected by how the captions fit the library's other videos."""
    bank = query_rows(video_bank(searcher, video, queries), Direction.VIDEO_TO_TEXT)
    method = _method(norm, beta, bank)
    row = query_rows(plain[:, None], Direction.VIDEO_TO_TEXT)
    scores = rows_to_sort(method.apply(row, method.fit(bank)))[0].astype(np.float64)
    fields = asdict(method)
    chosen = f", beta={fields['beta']:g}" if "beta" in fields else ""
    return scores, f"videobank({len(bank)} videos, method={norm}{chosen})"


def video_bank(searcher: Searcher, video: VideoQuery, queries: Sequence[QueryEmbedding]) -> Float32:
    """Measure how well each caption fits each of the library's other videos: `[captions, videos]`."""
    numbers = searcher.snapshot.video_numbers
    others = np.flatnonzero(numbers != searcher.snapshot.columns.numbers([video.content])[0])
    if not len(others):
        raise QueryError(
            "the library's other videos make the bank, and there are none",
            NextStep("rank with the normalisation 'none'"),
        )
    spread = np.unique(np.linspace(0, len(others) - 1, min(BANK, len(others))).round().astype(int))
    at, starts = take_segments(*searcher.snapshot.segments, others[spread])
    index = ExactIndex(
        np.asarray(searcher.snapshot.gallery.vectors[at]), searcher.snapshot.gallery.available[at]
    )
    fits = np.empty((len(queries), len(spread)), np.float32)
    for start in range(0, len(queries), BATCH):
        some = queries[start : start + BATCH]
        vectors, weights = np.stack([q.vectors for q in some]), np.stack([q.weights for q in some])
        items = index.scores(vectors, weights, slice(None))
        fits[start : start + len(some)] = segment_max(items, starts)
    return fits


def _method(norm: str, beta: float | None, bank: Float32) -> Method:
    """Return the method with its β: as given, or chosen on the bank without labels."""
    if "beta" not in METHODS[norm].__dataclass_fields__:
        if beta is not None:
            raise QueryError(f"{norm!r} has no beta; leave it out")
        return make_method(norm)
    if beta is None:
        beta = choose_beta_unlabelled(bank) if len(bank) > 1 else PUBLISHED
    return make_method(norm, beta=beta)


def _reasons(searcher: Searcher, video: VideoQuery, query: QueryEmbedding, clip: int) -> tuple[Reason, ...]:
    """Each expert's share of the plain similarity with its best clip, and what it recognised there."""
    vectors, available = video.vectors[clip], video.available[clip]
    recognised = searcher.model.explain(query, video.tracks, video.clips[clip])
    cosines = (query.vectors * vectors).sum(axis=1)
    (reasons,) = expert_reasons(searcher.model, query, cosines[None], available[None], [recognised])
    return strongest_first(reasons)


KEYS = ("caption", "text", "sentence")


def read_texts(address: str) -> list[str]:
    """Return the captions of a file in their order, each once."""
    path = Path(address).expanduser()
    ending = path.suffix.lower()
    if json_address.is_json_address(address):
        texts = list(_inside(json_address.read_address(str(path)), address))
    elif ending in (".jsonl", ".ndjson"):
        texts = [text for number, line in read_lines(path) for text in _line(line, f"{path}, line {number}")]
    elif ending in (".csv", ".tsv"):
        texts = list(_column(path, "," if ending == ".csv" else "\t"))
    else:
        texts = [line for _, line in read_lines(path)]
    texts = normalize_queries(texts)
    if not texts:
        raise DatasetError(f"{address} has no captions")
    return texts


def _inside(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for entry in value:
            yield from _inside(entry, where)
    elif isinstance(value, dict) and any(isinstance(value.get(key), str) for key in KEYS):
        yield next(value[key] for key in KEYS if isinstance(value.get(key), str))
    elif isinstance(value, dict) and value and all(isinstance(v, str | list) for v in value.values()):
        for entry in value.values():
            yield from _inside(entry, where)
    else:
        raise DatasetError(
            f'{where} must hold texts: ["a man sings", …] or {{"clip1": ["a man sings", …]}}; '
            "name FILE.json:key if they are inside"
        )


def _line(line: str, where: str) -> Iterator[str]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{where}: not JSON: {error}") from None
    return _inside(value, where)


def _column(path: Path, delimiter: str) -> Iterator[str]:
    table = read_rows(path, delimiter, strict=True)
    for number, header in table:
        wanted = column_indices(path, number, header, [KEYS])
        for last, row in table:
            yield pick_cells(path, last, row, wanted)[0]
