"""From what people have to a report: a similarity matrix, or a library with captions.

A model and a dataset are a library too: a searcher that was opened with that model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.hubness import Direction
from wordreel.lab.evaluate.library import ScoredCaptions
from wordreel.lab.evaluate.normalised_rankings import Normalisation
from wordreel.lab.evaluate.runs import EvaluationRun, Modality, measure
from wordreel.lab.reports import report_files
from wordreel.lab.reports.report_files import QueryKeys
from wordreel.lab.reports.report_page import page
from wordreel.lab.reports.tables import QueryGroup, by_expert, by_length, spread_of
from wordreel.retrieval.caption_ranks import Captions, Protocol
from wordreel.search.searcher import Searcher
from wordreel.types import Array


@dataclass(frozen=True)
class EvaluationReport:
    """Runs with the facts about them."""

    facts: dict[str, Any]
    runs: tuple[EvaluationRun, ...]
    queries: QueryKeys

    def page(self) -> str:
        """Return the HTML page."""
        return page(self.facts, self.runs)

    def write(self, prefix: Path) -> list[Path]:
        """Write PREFIX.json, .md, .tex, .html and .ranks.npz."""
        return report_files.write(prefix, self.facts, self.runs, self.queries, self.page())


@dataclass(frozen=True)
class ReportRequest:
    """What to measure, and what the facts say about it."""

    title: str
    command: str
    inputs: Sequence[Mapping[str, str]]
    directions: Sequence[Direction] = tuple(Direction)
    protocol: Protocol = "ce"
    seeds: Sequence[int] = ()
    deviations: Sequence[str] = ()  # from the named protocol
    modality: Modality = "video"


def of_matrix(
    similarities: Array,
    captions: Captions,
    request: ReportRequest,
    normalisations: Sequence[Normalisation] = (),
) -> EvaluationReport:
    """Return a report on `similarities [captions, videos]`; its videos and texts have no names."""
    measured = {"kind": "matrix", "videos": captions.videos, "captions": int(captions.valid.sum())}
    queries = report_files.queries_of(captions.owner, columns=captions.videos)
    return _report(similarities, captions, request, normalisations, measured, queries)


def of_library(
    searcher: Searcher,
    scored: ScoredCaptions,
    request: ReportRequest,
    normalisations: Sequence[Normalisation] = (),
) -> EvaluationReport:
    """Return a report on captions that a library, with any model, has scored (`library.score`)."""
    captions = scored.captions
    measured = {
        "kind": "library",
        "model": searcher.model.name,
        "fingerprint": searcher.model.fingerprint,
        "experts": {name: round(float(np.mean(present)), 4) for name, present in scored.experts.items()},
        "videos": captions.videos,
        "captions": len(captions),
        "missing": scored.missing,
        "files_sha256": scored.files_sha256,
    }
    queries = report_files.queries_of(captions.owner, scored.texts, scored.videos)
    partly = {name: present for name, present in scored.experts.items() if any(present) and not all(present)}

    def groups_of(texts: EvaluationRun) -> dict[str, list[QueryGroup]]:
        return {
            "length": by_length(texts, scored.texts),
            "experts": by_expert(texts, captions.owner, partly),
        }

    return _report(scored.similarities, captions, request, normalisations, measured, queries, groups_of)


def _report(
    similarities: Array,
    captions: Captions,
    request: ReportRequest,
    normalisations: Sequence[Normalisation],
    measured: Mapping[str, Any],
    queries: QueryKeys,
    groups_of: Callable[[EvaluationRun], Mapping[str, list[QueryGroup]]] | None = None,
) -> EvaluationReport:
    runs = measure(
        similarities, captions, request.directions, request.protocol, normalisations, request.modality
    )
    texts = next((run for run in runs if run.direction is Direction.TEXT_TO_VIDEO), None)
    normalised = [
        {
            "direction": how.direction.value,
            "method": how.method.name,
            "parameters": asdict(cast(Any, how.method)),
            "transductive": how.transductive,
        }
        for how in normalisations
        if how.direction in request.directions
    ]
    facts = report_files.facts_of(
        request.title,
        request.command,
        request.inputs,
        {
            **measured,
            **report_files.digests(queries),
            "deviations": list(request.deviations),
            "normalisations": normalised,
        },
        runs,
        groups_of(texts) if groups_of and texts is not None else {},
        request.seeds,
    )
    return EvaluationReport(facts, tuple(runs), queries)


def of_seeds(reports: Sequence[EvaluationReport]) -> dict[str, Any]:
    """Return the facts of several reports on the same queries, one per seed: mean ± standard deviation."""
    if len({report.facts["measured"]["queries_sha256"] for report in reports}) > 1:
        raise EvaluationError("the matrices are over different numbers of captions or videos")
    inputs = [entry for report in reports for entry in report.facts["inputs"]]
    return {**_average(reports), "inputs": inputs}


def of_folds(reports: Sequence[EvaluationReport]) -> dict[str, Any]:
    """Return the facts of one test set in folds: means over the folds, and beside them `deviation`."""
    facts = _average(reports)
    counts = {
        name: sum(report.facts["measured"][name] for report in reports) for name in ("videos", "captions")
    }
    return {**facts, "measured": {**facts["measured"], "folds": len(reports), **counts}}


def _average(reports: Sequence[EvaluationReport]) -> dict[str, Any]:
    return {**reports[0].facts, "runs": spread_of([report.runs for report in reports]), "breakdown": {}}
