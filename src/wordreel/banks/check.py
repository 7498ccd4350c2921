"""Does a bank help? Measured before it is trusted, on queries with known answers that are not in the bank.

The videos are split in two. On the first half every method gets its β (the grid of `hubness.beta`) and
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

from wordreel.banks.caption_queries import CaptionQueries, caption_queries
from wordreel.banks.confidence_check import check as measure_confidence
from wordreel.banks.confidence_check import table as confidence_table
from wordreel.banks.embedded_bank import EmbeddedBank, GCRescorer, unlabelled_beta
from wordreel.banks.fitted_states import fit_all
from wordreel.errors import BankError, NextStep
from wordreel.hubness import METHODS, Method, make_method
from wordreel.hubness.beta import GRID
from wordreel.hubness.measures import skewness
from wordreel.hubness.methods.globally_corrected import GloballyCorrected
from wordreel.index.base import Correction
from wordreel.progress import ProgressCallback
from wordreel.retrieval.rankings import Ranking, rank_queries, rank_right_items
from wordreel.retrieval.significance import compare
from wordreel.search.query_fields import SEARCHABLE
from wordreel.search.scoring import PLAIN, FittedNorm
from wordreel.types import Bool, Float32
from wordreel.util.even_sample import even_sample

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
    """The result of a check, as stored in JSON."""

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
    embedded: EmbeddedBank,
    captions: Mapping[str, Sequence[str]],
    methods: Sequence[str] = CHECKED_METHODS,
    beta: float | None = None,
    on_progress: ProgressCallback | None = None,
) -> BankCheck:
    """Check a bank with the captions of some videos. `beta` holds β where it should not be chosen."""
    unknown = [name for name in methods if name not in SEARCHABLE]
    if unknown:
        raise BankError(f"cannot check {', '.join(unknown)}; choose from {', '.join(SEARCHABLE)}")
    known = set(embedded.bank.texts)
    fresh = {
        name: [text for text in texts if " ".join(text.split()) not in known]
        for name, texts in captions.items()
    }
    in_bank = sum(map(len, captions.values())) - sum(map(len, fresh.values()))
    if in_bank and not any(fresh.values()):
        raise BankError(
            f"all {in_bank} captions are queries of the bank {embedded.bank.name!r}",
            NextStep("check it with captions that it was not built from"),
        )
    queries = caption_queries(embedded.searcher, fresh)
    first = np.array([_first_half(content) for content in queries.contents])[queries.right]
    if min(first.sum(), (~first).sum()) < FEWEST:
        raise BankError(
            f"{len(queries.texts)} captions of {len(queries.contents)} videos (not counting {in_bank} "
            f"that are in the bank) are too few to check it; each half of the videos needs {FEWEST}"
        )
    candidates = [
        make_method("none"),
        *(one for name in methods if name != "none" for one in _grid(name, beta)),
    ]
    without = [
        make_method(name, beta=unlabelled_beta(embedded))
        for name in methods
        if beta is None and _has_beta(name)
    ]
    rankings = _rank(embedded, queries, [*candidates, *without], on_progress)
    choose = [ranking.only(first).metrics.rsum for ranking in rankings[: len(candidates)]]
    best_of_each = _best_of_each(candidates, choose)

    def row_of(number: int) -> BankCheckRow:
        ranking = rankings[number].only(~first)
        metrics = ranking.metrics
        method = [*candidates, *without][number]
        figures = (metrics.r1, metrics.r5, metrics.r10, metrics.median_rank, skewness(ranking.occurrences))
        row = BankCheckRow(method.name, asdict(method), *figures)
        if not number:
            return row
        plain = rankings[0].only(~first)
        test = compare(plain.ranks, ranking.ranks, metric="Rsum", groups=queries.right)
        return replace(row, difference=test.difference, low=test.low, high=test.high, p_value=test.p_value)

    rows = [row_of(number) for number in best_of_each]
    best = max(range(len(best_of_each)), key=lambda index: (choose[best_of_each[index]], -index))
    chosen = rows[best]
    passed = bool(best > 0 and chosen.difference > 0 and chosen.p_value < LEVEL and chosen.R1 >= rows[0].R1)
    method = candidates[best_of_each[best]]
    return BankCheck(
        bank=embedded.bank.name,
        bank_size=len(embedded.bank),
        model=embedded.searcher.model.name,
        videos=len(queries.contents),
        queries=int((~first).sum()),
        choosing_queries=int(first.sum()),
        in_bank=in_bank,
        missing=queries.missing,
        rows=tuple(rows),
        unlabelled=tuple(row_of(len(candidates) + number) for number in range(len(without))),
        method=chosen.method,
        parameters=chosen.parameters,
        betas={row.method: float(row.parameters["beta"]) for row in rows if "beta" in row.parameters},
        passed=passed,
        verdict=_verdict(passed, best, chosen, rows[0]),
        label=embedded.label(method),
        confidence=_confidence(embedded, queries, ~first),
    )


def _confidence(embedded: EmbeddedBank, queries: CaptionQueries, measured: Bool) -> dict[str, Any] | None:
    """Whether one threshold on the confidence tells answers from others better than one on similarity."""
    confidence = embedded.confidence()
    if confidence is None or len(queries.contents) < FEWEST_VIDEOS:
        return None
    rows = np.flatnonzero(measured)
    rows = rows[even_sample(len(rows), MOST_FOR_CONFIDENCE)]
    scores, best = [], []
    for start in range(0, len(rows), BATCH):
        texts = [queries.texts[row] for row in rows[start : start + BATCH]]
        plain = next(embedded.searcher.item_scores(texts, [PLAIN]))
        scores.append(embedded.searcher.snapshot.best_items(plain)[:, queries.columns])
        best.append(embedded.searcher.snapshot.best_rows(plain)[:, queries.columns])
    rows_of_best = confidence.rows[np.concatenate(best)]
    return measure_confidence(
        confidence.confidence, np.concatenate(scores), rows_of_best, queries.right[rows]
    )


def _rank(
    embedded: EmbeddedBank,
    queries: CaptionQueries,
    methods: Sequence[Method],
    on_progress: ProgressCallback | None,
) -> list[Ranking]:
    """Rank by each method: return ranks of the right videos, and the first ten."""
    norms = _norms(embedded, methods)

    def scores_of(start: int, stop: int) -> Iterator[Float32]:
        for items in embedded.searcher.item_scores(queries.texts[start:stop], norms):
            yield embedded.searcher.snapshot.best_items(items)[:, queries.columns]

    return rank_queries(
        scores_of,
        rank_right_items(queries.right),
        len(queries.texts),
        len(queries.contents),
        len(norms),
        k=TOP,
        batch=max(BATCH, min(MOST_AT_ONCE, SCORES_AT_ONCE // max(1, len(embedded.gallery.ids)))),
        threads=1,
        on_progress=on_progress,
    )


def _norms(embedded: EmbeddedBank, methods: Sequence[Method]) -> list[FittedNorm]:
    """As `EmbeddedBank.norm`, but fitted together, and candidates are not cached on disk."""
    folded = [one for one in methods if one.name != "none" and not isinstance(one, GloballyCorrected)]
    fits = iter(fit_all(embedded.bank, embedded.vectors, embedded.gallery, folded))
    ids = embedded.gallery.ids

    def norm(method: Method) -> FittedNorm:
        if method.name == "none":
            return PLAIN
        if isinstance(method, GloballyCorrected):
            return FittedNorm("tried", rescore=GCRescorer(embedded.current(), embedded.gallery).cached())
        state = next(fits)
        return FittedNorm("tried", Correction(state.bias(ids), state.active(ids) if method.gated else None))

    return [norm(method) for method in methods]


def _has_beta(name: str) -> bool:
    return "beta" in METHODS[name].__dataclass_fields__


def _grid(name: str, beta: float | None) -> list[Method]:
    if not _has_beta(name):
        return [make_method(name)]
    return [make_method(name, beta=value) for value in (GRID if beta is None else (beta,))]


def _best_of_each(candidates: Sequence[Method], values: Sequence[float]) -> list[int]:
    """Return the index of the best candidate of every method, plain first."""
    best: dict[str, int] = {}
    for index, method in enumerate(candidates):
        if method.name not in best or values[index] > values[best[method.name]]:
            best[method.name] = index
    return list(best.values())


def _first_half(content: str) -> bool:
    return hashlib.sha256(content.encode()).digest()[0] < 128


def _verdict(passed: bool, best: int, chosen: BankCheckRow, plain: BankCheckRow) -> str:
    change = f"R-sum {chosen.difference:+.1f} with {chosen.method}, p = {chosen.p_value:.3g}"
    if passed:
        return f"use it: {change}"
    if not best:
        return "do not: no method beat plain ranking on the half that chooses"
    if chosen.R1 < plain.R1 and chosen.difference > 0:
        return f"do not: {chosen.method} lowered R@1 from {plain.R1:.1f} to {chosen.R1:.1f}"
    return f"do not: {change}, could be chance" if chosen.difference > 0 else f"do not: {change}"


def as_markdown(report: BankCheck) -> str:
    """Compare methods with plain ranking, also with β chosen without labels, and confidences, in Markdown."""
    lines = [
        f"Bank `{report.bank}` of {report.bank_size} queries, model {report.model}: {report.queries} "
        f"captions of one half of {report.videos} videos; {report.choosing_queries} captions of the other "
        f"half chose β and method. {report.in_bank} captions that are in the bank were left out. "
        f"Verdict: {report.verdict}.",
        "",
        "| method | β | R@1 | R@5 | R@10 | MdR | skewness | R-sum against plain | 95 % interval | p |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|--:|",
        *(_markdown_row("plain" if row.method == "none" else row.method, row) for row in report.rows),
        *(_markdown_row(f"{row.method}, β without labels", row) for row in report.unlabelled),
    ]
    if report.confidence is not None:
        lines += ["", "Confidence against similarity, one threshold for all queries (per cent):", ""]
        lines.append(confidence_table(report.confidence).rstrip())
    return "\n".join(lines) + "\n"


def _markdown_row(name: str, row: BankCheckRow) -> str:
    beta = f"{row.parameters['beta']:g}" if "beta" in row.parameters else "–"
    figures = f"{row.R1:.1f} | {row.R5:.1f} | {row.R10:.1f} | {row.MdR:g} | {row.skewness:.2f}"
    if row.method == "none":
        return f"| {name} | – | {figures} | – | – | – |"
    interval = f"{row.low:+.1f} to {row.high:+.1f}"
    return f"| {name} | {beta} | {figures} | {row.difference:+.1f} | {interval} | {row.p_value:.3g} |"
