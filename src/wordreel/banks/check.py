"""Does a bank help? Measured before it is trusted, on queries with known answers that are not in the bank.

The videos are split in two. On the first half every method gets its β (the grid of `hubness.choose_beta`) and
the best method is chosen, plain ranking being one of them. On the second half, which chose nothing, each
method is measured against plain ranking, and the chosen one is tested: paired, with the captions of one
video kept together. The verdict is "use it" only if R-sum (R@1 + R@5 + R@10) rose with p < 0.05 and R@1 did
not fall.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from wordreel.banks.beta import unlabelled_beta
from wordreel.banks.embedded_bank import EmbeddedBank, GCRescorer, label_of
from wordreel.banks.fitted_states import fit_all
from wordreel.errors import BankError
from wordreel.evaluate.confidence import check as measure_confidence
from wordreel.evaluate.library import CaptionQueries, caption_queries
from wordreel.evaluate.rankings import Ranking, RightItem, rank_queries
from wordreel.evaluate.significance import compare
from wordreel.hubness import METHODS, Method, make_method
from wordreel.hubness.choose_beta import GRID
from wordreel.hubness.globally_corrected import GloballyCorrected
from wordreel.hubness.measures import skewness
from wordreel.index.base import Correction
from wordreel.progress import ProgressCallback
from wordreel.search.scoring import PLAIN, SEARCHABLE, FittedNorm
from wordreel.types import Bool, Float32, Int64

CHECKED_METHODS = ("cent", "is", "dis", "csls", "nnn", "gc")
BATCH = 256  # queries scored at once, at least
MOST_AT_ONCE = 2_048  # some methods go over the bank once for every batch
SCORES_AT_ONCE = 1 << 23
TOP = 10  # of the k-occurrences
LEVEL = 0.05
FEWEST_VIDEOS = 10  # below which a confidence cannot be judged
MOST_FOR_CONFIDENCE = 5_000  # queries of each half
FEWEST = 20  # queries in each half; fewer cannot show anything


@dataclass(frozen=True)
class BankCheckRow:
    """One method on the half that chose nothing."""

    method: str
    parameters: dict[str, Any]
    R1: float
    R5: float
    R10: float
    MdR: float
    skewness: float
    difference: float = 0.0  # of R-sum to plain ranking
    low: float = 0.0
    high: float = 0.0
    p_value: float = 1.0


@dataclass(frozen=True)
class BankCheck:
    """What a check found, fit to be kept as JSON."""

    bank: str
    bank_size: int
    model: str
    videos: int
    queries: int  # of the half that was measured
    choosing_queries: int
    in_bank: int  # captions left out because the bank has them
    missing: int  # captioned videos that are not in the library
    rows: tuple[BankCheckRow, ...]
    unlabelled: tuple[BankCheckRow, ...]  # the same methods with the β that is chosen without labels
    method: str  # chosen on the first half; "none" where plain ranking was best
    parameters: dict[str, Any]
    betas: dict[str, float]
    passed: bool
    verdict: str
    label: str
    confidence: dict[str, Any] | None  # measured on the same half


def check_bank(
    work: EmbeddedBank,
    captions: Mapping[str, Sequence[str]],
    methods: Sequence[str] = CHECKED_METHODS,
    beta: float | None = None,
    on_progress: ProgressCallback | None = None,
) -> BankCheck:
    """Check a bank with the captions of some videos. `beta` holds β where it should not be chosen."""
    unknown = [name for name in methods if name not in SEARCHABLE]
    if unknown:
        raise BankError(f"cannot check {', '.join(unknown)}; choose from {', '.join(SEARCHABLE)}")
    known = set(work.bank.texts)
    fresh = {
        name: [text for text in texts if " ".join(text.split()) not in known]
        for name, texts in captions.items()
    }
    in_bank = sum(map(len, captions.values())) - sum(map(len, fresh.values()))
    asked = caption_queries(work.searcher, fresh)
    first = np.array([_first_half(content) for content in asked.contents])[asked.right]
    if min(first.sum(), (~first).sum()) < FEWEST:
        raise BankError(
            f"{len(asked.texts)} captions of {len(asked.contents)} videos (not counting {in_bank} that are "
            f"in the bank) are too few to check it; give at least {FEWEST} for each half of the videos"
        )
    candidates = [
        make_method("none"),
        *(one for name in methods if name != "none" for one in _grid(name, beta)),
    ]
    without = [
        make_method(name, beta=unlabelled_beta(work)) for name in methods if beta is None and _has_beta(name)
    ]
    rankings = _rank(work, asked, [*candidates, *without], on_progress)
    choose = [ranking.only(first).metrics.rsum for ranking in rankings[: len(candidates)]]
    kept = _best_of_each(candidates, choose)

    def row_of(number: int) -> BankCheckRow:
        ranking = rankings[number].only(~first)
        metrics = ranking.metrics
        method = [*candidates, *without][number]
        row = BankCheckRow(
            method.name,
            asdict(method),
            metrics.r1,
            metrics.r5,
            metrics.r10,
            metrics.median_rank,
            skewness(ranking.occurrences),
        )
        if not number:
            return row
        plain = rankings[0].only(~first)
        test = compare(plain.ranks, ranking.ranks, metric="Rsum", groups=asked.right)
        return replace(row, difference=test.difference, low=test.low, high=test.high, p_value=test.p_value)

    rows = [row_of(number) for number in kept]
    best = max(range(len(kept)), key=lambda place: (choose[kept[place]], -place))
    chosen = rows[best]
    passed = bool(best > 0 and chosen.difference > 0 and chosen.p_value < LEVEL and chosen.R1 >= rows[0].R1)
    method = candidates[kept[best]]
    return BankCheck(
        bank=work.bank.name,
        bank_size=len(work.bank),
        model=work.searcher.model.name,
        videos=len(asked.contents),
        queries=int((~first).sum()),
        choosing_queries=int(first.sum()),
        in_bank=in_bank,
        missing=asked.missing,
        rows=tuple(rows),
        unlabelled=tuple(row_of(len(candidates) + number) for number in range(len(without))),
        method=chosen.method,
        parameters=chosen.parameters,
        betas={row.method: float(row.parameters["beta"]) for row in rows if "beta" in row.parameters},
        passed=passed,
        verdict=_verdict(passed, best, chosen, rows[0]),
        label=label_of(work.bank, method) if best else "none",
        confidence=_confidence(work, asked, ~first),
    )


def _confidence(work: EmbeddedBank, asked: CaptionQueries, measured: Bool) -> dict[str, Any] | None:
    """Whether one threshold on the confidence tells answers from others better than one on similarity."""
    sure = work.confidence()
    if sure is None or len(asked.contents) < FEWEST_VIDEOS:
        return None
    rows = _spread(np.flatnonzero(measured), MOST_FOR_CONFIDENCE)
    scores, best = [], []
    for start in range(0, len(rows), BATCH):
        texts = [asked.texts[row] for row in rows[start : start + BATCH]]
        plain = next(work.searcher.item_scores(texts, [PLAIN]))
        scores.append(work.searcher.snapshot.best_items(plain)[:, asked.columns])
        best.append(work.searcher.snapshot.best_rows(plain)[:, asked.columns])
    places = sure.rows[np.concatenate(best)]
    return measure_confidence(sure.confidence, np.concatenate(scores), places, asked.right[rows])


def _spread(rows: Int64, most: int) -> Int64:
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(np.int64)]


def _rank(
    work: EmbeddedBank, asked: CaptionQueries, methods: Sequence[Method], on_progress: ProgressCallback | None
) -> list[Ranking]:
    """The ranking of each method: ranks of the right videos, and the first ten."""
    norms = _norms(work, methods)

    def scores_of(start: int, stop: int) -> Iterator[Float32]:
        for items in work.searcher.item_scores(asked.texts[start:stop], norms):
            yield work.searcher.snapshot.best_items(items)[:, asked.columns]

    return rank_queries(
        scores_of,
        RightItem(asked.right),
        len(asked.texts),
        len(asked.contents),
        len(norms),
        k=TOP,
        batch=max(BATCH, min(MOST_AT_ONCE, SCORES_AT_ONCE // max(1, len(work.gallery.ids)))),
        threads=1,
        on_progress=on_progress,
    )


def _norms(work: EmbeddedBank, methods: Sequence[Method]) -> list[FittedNorm]:
    """As `EmbeddedBank.norm`, but fitted together, and what is only tried is not kept on the disk."""
    folded = [one for one in methods if one.name != "none" and not isinstance(one, GloballyCorrected)]
    fits = iter(fit_all(work.bank, work.vectors, work.gallery, folded))
    ids = work.gallery.ids

    def norm(method: Method) -> FittedNorm:
        if method.name == "none":
            return PLAIN
        if isinstance(method, GloballyCorrected):
            return FittedNorm("tried", rescore=GCRescorer(work.current(), work.gallery).cached())
        found = next(fits)
        return FittedNorm("tried", Correction(found.bias(ids), found.active(ids) if method.gated else None))

    return [norm(method) for method in methods]


def _has_beta(name: str) -> bool:
    return "beta" in METHODS[name].__dataclass_fields__


def _grid(name: str, beta: float | None) -> list[Method]:
    if not _has_beta(name):
        return [make_method(name)]
    return [make_method(name, beta=value) for value in (GRID if beta is None else (beta,))]


def _best_of_each(candidates: Sequence[Method], values: Sequence[float]) -> list[int]:
    """The place of the best candidate of every method, plain first."""
    best: dict[str, int] = {}
    for place, method in enumerate(candidates):
        if method.name not in best or values[place] > values[best[method.name]]:
            best[method.name] = place
    return list(best.values())


def _first_half(content: str) -> bool:
    return hashlib.sha256(content.encode()).digest()[0] < 128


def _verdict(passed: bool, best: int, chosen: BankCheckRow, plain: BankCheckRow) -> str:
    found = f"R-sum {chosen.difference:+.1f} with {chosen.method}, p = {chosen.p_value:.3g}"
    if passed:
        return f"use it: {found}"
    if not best:
        return "do not: no method beat plain ranking on the half that chooses"
    if chosen.R1 < plain.R1 and chosen.difference > 0:
        return f"do not: {chosen.method} lowered R@1 from {plain.R1:.1f} to {chosen.R1:.1f}"
    return f"do not: {found}, could be chance" if chosen.difference > 0 else f"do not: {found}"
