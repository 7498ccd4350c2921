"""From what people have to a report: a similarity matrix, or a library with captions.

A model and a dataset are a library too: a searcher that was opened with that model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.hubness import Direction
from wordreel.lab.evaluate.library import ScoredCaptions
from wordreel.lab.evaluate.normalised_rankings import Normalisation
from wordreel.lab.evaluate.runs import EvaluationRun, Modality, measure
from wordreel.lab.reports import report_files
from wordreel.lab.reports.report_analysis import QueryGroup, by_expert, by_length
from wordreel.lab.reports.report_files import QueryKeys
from wordreel.lab.reports.report_page import FrameLookup, ReportSubject, page
from wordreel.lab.reports.tables import spread_of
from wordreel.retrieval.caption_ranks import Captions, Protocol
from wordreel.search.searcher import Searcher
from wordreel.types import Array


@dataclass(frozen=True)
class EvaluationReport:
    """Runs with the facts about them."""

    facts: dict[str, Any]
    runs: tuple[EvaluationRun, ...]
    queries: QueryKeys
    subject: ReportSubject

    def page(self, frame_of: FrameLookup | None = None) -> str:
        """Return the HTML page, with frames where `frame_of` has them."""
        return page(self.facts, self.runs, replace(self.subject, frame_of=frame_of))

    def write(self, prefix: Path, frame_of: FrameLookup | None = None) -> list[Path]:
        """PREFIX.json, .md, .tex, .html and .ranks.npz."""
        return report_files.write(prefix, self.facts, self.runs, self.queries, self.page(frame_of))


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
    runs = measure(
        similarities, captions, request.directions, request.protocol, normalisations, request.modality
    )
    queries = report_files.queries_of(captions.owner, columns=captions.videos)
    measured = {
        "kind": "matrix",
        "videos": captions.videos,
        "captions": int(captions.valid.sum()),
        **report_files.digests(queries),
        **_normalisation_facts(request, normalisations),
    }
    facts = report_files.facts_of(
        request.title, request.command, request.inputs, measured, runs, seeds=request.seeds
    )
    return EvaluationReport(facts, tuple(runs), queries, ReportSubject(captions.owner))


def of_seeds(reports: Sequence[EvaluationReport]) -> dict[str, Any]:
    """Return the facts of several reports on the same queries, one per seed: mean ± standard deviation."""
    first = reports[0].facts
    digests = {report.facts["measured"]["queries_sha256"] for report in reports}
    if len(digests) > 1:
        raise EvaluationError("the matrices are over different numbers of captions or videos")
    return {
        **first,
        "inputs": [entry for report in reports for entry in report.facts["inputs"]],
        "runs": spread_of([report.runs for report in reports]),
        "breakdown": {},
    }


def of_folds(reports: Sequence[EvaluationReport]) -> dict[str, Any]:
    """Return the facts of one test set in folds: means over the folds, and beside them `deviation`."""
    first = reports[0].facts
    measured = [report.facts["measured"] for report in reports]
    return {
        **first,
        "measured": {
            **first["measured"],
            "folds": len(reports),
            "videos": sum(each["videos"] for each in measured),
            "captions": sum(each["captions"] for each in measured),
        },
        "runs": spread_of([report.runs for report in reports]),
        "breakdown": {},
    }


def of_library(
    searcher: Searcher,
    scored: ScoredCaptions,
    request: ReportRequest,
    normalisations: Sequence[Normalisation] = (),
) -> EvaluationReport:
    """Return a report on captions that a library, with any model, has scored (`library.score`)."""
    captions = scored.captions
    runs = measure(
        scored.similarities,
        captions,
        request.directions,
        request.protocol,
        normalisations,
        request.modality,
    )
    queries = report_files.queries_of(captions.owner, scored.texts, scored.videos)
    measured = {
        "kind": "library",
        "model": searcher.model.name,
        "fingerprint": searcher.model.fingerprint,
        "experts": {name: round(float(np.mean(present)), 4) for name, present in scored.experts.items()},
        "videos": captions.videos,
        "captions": len(captions),
        "missing": scored.missing,
        **report_files.digests(queries),
        "files_sha256": scored.files_sha256,
        **_normalisation_facts(request, normalisations),
    }
    groups: dict[str, list[QueryGroup]] = {}
    texts = next((run for run in runs if run.direction is Direction.TEXT_TO_VIDEO), None)
    if texts is not None:
        partly = {name: s for name, s in scored.experts.items() if any(s) and not all(s)}
        groups = {
            "length": by_length(texts, scored.texts),
            "experts": by_expert(texts, captions.owner, partly),
        }
    facts = report_files.facts_of(
        request.title, request.command, request.inputs, measured, runs, groups, request.seeds
    )
    return EvaluationReport(
        facts, tuple(runs), queries, ReportSubject(captions.owner, scored.texts, scored.videos)
    )


def _normalisation_facts(request: ReportRequest, each: Sequence[Normalisation]) -> dict[str, Any]:
    return {
        "deviations": list(request.deviations),
        "normalisations": [
            {
                "direction": how.direction.value,
                "method": how.method.name,
                "parameters": _parameters(how.method),
                "transductive": how.transductive,
            }
            for how in each
            if how.direction in request.directions
        ],
    }


def _parameters(method: Any) -> dict[str, Any]:
    return asdict(method)
