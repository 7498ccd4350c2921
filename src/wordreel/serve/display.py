"""How files and hits are displayed: names, paths, the addresses of pictures, and hits as JSON objects.

Hits are plain dictionaries with the fields of `schemas.HitModel`: a page of hits has two hundred objects, and
validating what the program itself puts together would take as long as finding it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from wordreel.search.hits import Hit, Match, SequenceHit
from wordreel.search.searcher import Searcher

JsonObject = dict[str, Any]

LONGEST_NAME = 255
MAX_FOLDERS = 100


def display_path(path: str) -> str:
    r"""Return a path as text that JSON can hold; bytes that are not text are escaped.

    >>> display_path("/films/\udcff.mp4")
    '/films/\\xff.mp4'
    """
    if path.isascii():  # as nearly every one
        return path
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def display_name(path: str, uploaded: dict[str, str] | None = None) -> str:
    """Return the name of a file; of an upload, the name its sender gave it."""
    name = path.rstrip("/").rpartition("/")[2]
    return (uploaded or {}).get(name) or display_path(name)


def safe_name(name: str) -> str:
    r"""Return the name of an uploaded file without folders and unprintable characters.

    >>> safe_name("../../etc/pass\nwd"), safe_name("C:\\films\\a.mp4"), safe_name("..")
    ('passwd', 'a.mp4', 'upload')
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    clean = "".join(c for c in last if c.isprintable()).strip()[:LONGEST_NAME]
    return clean if clean.strip(". ") else "upload"


def largest_folders(paths: Iterable[str], library: str) -> list[str]:
    """Return the folders with the most files, without those of the library itself.

    >>> largest_folders(["/a/1.mp4", "/b/2.mp4", "/b/3.mp4", "/lib/uploads/4"], "/lib")
    ['/b', '/a']
    """
    folders = Counter(path.rpartition("/")[0] or "/" for path in paths if not path.startswith(f"{library}/"))
    return [display_path(folder) for folder, _ in folders.most_common(MAX_FOLDERS)]


def thumb_url(content: str, second: float) -> str:
    """Return the address of a thumbnail."""
    return f"/api/thumb/{content}?t={second:.2f}"


def preview_url(content: str, start: float, end: float) -> str:
    """Return the address of a moving preview."""
    return f"/api/preview/{content}?start={start:.2f}&end={end:.2f}"


def media_url(content: str) -> str:
    """Return the address of a file."""
    return f"/media/{content}"


def hit_objects(
    searcher: Searcher, hits: Sequence[Hit], weights: Sequence[float] | None, uploaded: dict[str, str]
) -> list[JsonObject]:
    """Return hits as JSON objects; `weights` is the query's mixture of experts, None for look-alikes."""
    shares = _expert_shares(searcher, [hit.content for hit in hits], weights)
    return [_hit(hit, own, uploaded) for hit, own in zip(hits, shares, strict=True)]


def _hit(hit: Hit, weights: dict[str, float], uploaded: dict[str, str]) -> JsonObject:
    path, then = str(hit.path), None
    if isinstance(hit, SequenceHit):
        then = {"start": hit.then[0], "end": hit.then[1], "score": finite(hit.then_score)}
    return {
        "rank": hit.rank,
        "score": finite(hit.score),
        "confidence": hit.confidence,
        "norm": hit.norm,
        "content": hit.content,
        "path": display_path(path),
        "name": display_name(path, uploaded),
        "kind": hit.kind,
        "duration": hit.duration,
        "captured": hit.captured,
        "analysis": hit.analysis,
        "start": hit.start,
        "end": hit.end,
        "why": hit.why,
        "weights": weights,
        "thumb": thumb_url(hit.content, (hit.start + hit.end) / 2),
        "preview": preview_url(hit.content, hit.start, hit.end),
        "media": media_url(hit.content),
        "then": then,
        "like": {"start": hit.like[0], "end": hit.like[1]} if isinstance(hit, Match) else None,
        "identical": isinstance(hit, Match) and hit.identical,
    }


def finite(value: float) -> float:
    """Return a number that JSON has: 0 for infinity and NaN."""
    return value if isfinite(value) else 0.0


def _expert_shares(
    searcher: Searcher, contents: Sequence[str], weights: Sequence[float] | None
) -> list[dict[str, float]]:
    """Return w a / Σ w a: the mixture weight of each expert for each of these videos."""
    if weights is None or not contents:
        return [{} for _ in contents]
    snapshot, experts = searcher.snapshot, searcher.model.experts
    places, known = snapshot.video_places(snapshot.columns.numbers(contents))
    available = np.zeros((len(contents), len(experts)), bool)
    available[known] = snapshot.video_experts[places[known]]
    return [mixture_shares(experts, (np.asarray(weights) * row).tolist()) for row in available]


def mixture_shares(experts: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """Return each expert's part of the sum of all `weights [experts]`; nothing where that is 0.

    >>> mixture_shares(("appearance", "motion", "sound"), [1.0, 0.5, 0.0])
    {'appearance': 0.6667, 'motion': 0.3333, 'sound': 0.0}
    """
    total = sum(weights)
    if total <= 0:
        return {}
    return {expert: round(weight / total, 4) for expert, weight in zip(experts, weights, strict=True)}
