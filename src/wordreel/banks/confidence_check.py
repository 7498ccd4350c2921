"""Is a confidence worth more than the plain similarity? Both on the same queries, under one threshold.

Two questions. *Pairs*: over all queries and videos together, does one threshold tell answers from
non-answers? *Top hit*: is the best video of the plain ranking right, where many queries have no answer in the
gallery, so that a good cut-off says "nothing here"? And the calibration error: how far a confidence is
from the share of hits that are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wordreel.errors import QueryError
from wordreel.hubness.confidence import Confidence
from wordreel.types import Array, Bool, Float64, Int64

BINS = 15
CUT_OFFS = (0.1, 0.2, 0.35, 0.5, 0.7)


def auprc(values: Array, right: Bool) -> float | None:
    """Return the area under the precision-recall curve, as average precision; None where nothing is right.

        the mean, over the right ones, of the share that is right among all values at least as large

    Equal values pass a threshold together, so their order never counts. Cost: one sort.

    >>> auprc(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    0.8333333333333333
    """
    ours, theirs = _sorted(values, right)
    if len(ours) == 0:
        return None
    hits = len(ours) - np.searchsorted(ours, ours)
    misses = len(theirs) - np.searchsorted(theirs, ours)
    return float((hits / (hits + misses)).mean())


def auroc(values: Array, right: Bool) -> float | None:
    """Return the chance that something right has a larger value than something wrong, ties counting half.

    >>> auroc(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    0.5
    """
    ours, theirs = _sorted(values, right)
    if len(ours) == 0 or len(theirs) == 0:
        return None
    below = np.searchsorted(theirs, ours, "left") + np.searchsorted(theirs, ours, "right")
    return float(below.mean() / 2 / len(theirs))


def calibration_error(values: Array, right: Bool, bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equally many hits.

    That is |mean confidence − share right|, averaged over the bins.

    >>> calibration_error(np.full(4, 0.5), np.array([True, False, True, False]))
    0.0
    """
    # Equal values fall into one bin wherever they can: their order must not decide which are right.
    values = np.asarray(values, np.float64)
    order = np.argsort(values, kind="stable")
    edges = np.searchsorted(values[order], values[order][(np.arange(1, bins) * len(values)) // bins])
    parts = np.split(order, np.unique(edges))
    return float(sum(abs(float(values[p].sum()) - int(right[p].sum())) for p in parts) / len(values))


def measure(scores: Array, right: Int64, confidences: Array) -> dict[str, Any]:
    """Answer both questions on plain arrays.

    `scores [queries, videos]` are plain similarities (a video is as good as its best item), `right [queries]`
    the video that answers, -1 where none does, `confidences [queries, videos]` what is to be judged.
    """
    scores, confidences, right = np.asarray(scores), np.asarray(confidences), np.asarray(right)
    if scores.ndim != 2 or scores.size == 0 or confidences.shape != scores.shape:
        raise QueryError(f"scores {scores.shape} and confidences {confidences.shape} are not one matrix each")
    if right.shape != (len(scores),) or right.min() < -1 or right.max() >= scores.shape[1]:
        raise QueryError(f"right answers are {len(scores)} video numbers below {scores.shape[1]}, or -1")
    answers = np.arange(scores.shape[1]) == right[:, None]
    top = scores.argmax(axis=1)
    everyone = np.arange(len(scores))
    top_confidence, top_score, hit = confidences[everyone, top], scores[everyone, top], top == right
    return {
        "queries": len(scores),
        "videos": scores.shape[1],
        "without_answer": int((right < 0).sum()),
        "pairs_auprc": {
            "similarity": auprc(scores.ravel(), answers.ravel()),
            "confidence": auprc(confidences.ravel(), answers.ravel()),
        },
        "top_right": float(hit.mean()),
        "top_auroc": {"similarity": auroc(top_score, hit), "confidence": auroc(top_confidence, hit)},
        "top_auprc": {"similarity": auprc(top_score, hit), "confidence": auprc(top_confidence, hit)},
        "mean_confidence": float(top_confidence.mean()),
        "calibration_error": calibration_error(top_confidence, hit),
        "cut_offs": [
            {
                "min_confidence": cut,
                "kept": float(passed.mean()),
                "right": float(hit[passed].mean()) if passed.any() else None,
            }
            for cut, passed in ((cut, top_confidence >= cut) for cut in CUT_OFFS)
        ],
    }


def check(
    confidence: Confidence, scores: Array, best: Int64 | None, right: Int64, halves: int = 4, seed: int = 0
) -> dict[str, Any]:
    """Run `measure` with the whole gallery, and with random halves, where half the answers are missing.

    `best [queries, videos]` says which item of the gallery gave each score; None where videos are items.
    """
    full = measure(scores, right, confidence.of(scores, best))
    results = []
    items = np.broadcast_to(np.arange(np.shape(scores)[1]), np.shape(scores)) if best is None else best
    for columns, answers in halved(np.shape(scores)[1], right, halves, seed):
        cut = scores[:, columns]
        results.append(measure(cut, answers, confidence.of(cut, items[:, columns])))
    return {"whole": full, "halves": _mean(results)}


def halved(videos: int, right: Int64, halves: int = 4, seed: int = 0) -> Iterator[tuple[Int64, Int64]]:
    """Yield `columns` of a random half of the gallery and its right answers, -1 where one is missing."""
    rng = np.random.default_rng(seed)
    for _ in range(halves):
        columns = np.sort(rng.permutation(videos)[: max(1, videos // 2)])
        position = np.full(videos, -1)
        position[columns] = np.arange(len(columns))
        yield columns, position[right]


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the result of `check` as a Markdown table, in percent."""
    lines = [
        "| gallery | videos | queries | no answer | top hit right | judged by | pairs AUPRC | top-hit AUROC "
        "| top-hit AUPRC | calibration error |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, one in results.items():
        for by in ("similarity", "confidence"):
            error = _percent(one["calibration_error"]) if by == "confidence" else "–"
            lines.append(
                f"| {name} | {one['videos']:.0f} | {one['queries']:.0f} | {one['without_answer']:.0f} "
                f"| {_percent(one['top_right'])} | {by} | {_percent(one['pairs_auprc'][by])} "
                f"| {_percent(one['top_auroc'][by])} | {_percent(one['top_auprc'][by])} | {error} |"
            )
    return "\n".join(lines) + "\n"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _sorted(values: Array, right: Bool) -> tuple[Array, Array]:
    """Sort the values of what is right and of what is wrong, smallest first."""
    values, right = np.asarray(values), np.asarray(right, bool)
    if values.ndim != 1 or values.shape != right.shape:
        raise QueryError(f"values {values.shape} and labels {right.shape} are not two lists of one length")
    if np.isnan(values).any():
        raise QueryError("values that are not numbers cannot be ranked")
    return np.sort(values[right]), np.sort(values[~right])


def _mean(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Average every number of some measurements; leave out what is None in one of them."""

    def average(values: list[Any]) -> Any:
        if isinstance(values[0], dict):
            return {key: average([value[key] for value in values]) for key in values[0]}
        if isinstance(values[0], list):
            return [average(list(column)) for column in zip(*values, strict=True)]
        known: Float64 = np.array([value for value in values if value is not None], np.float64)
        return float(known.mean()) if len(known) else None

    return dict(average(results))
