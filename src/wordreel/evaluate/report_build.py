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
from wordreel.evaluate import library as libraries
from wordreel.evaluate import querybank, report_files
from wordreel.evaluate.report import Normalisation, Run, Way, measure
from wordreel.evaluate.report_breakdown import Group, by_expert, by_length
from wordreel.evaluate.report_files import Queries
from wordreel.evaluate.report_page import Look, Subject, page
from wordreel.evaluate.report_tables import spread_of
from wordreel.evaluate.retrieval import Array, Captions, Protocol
from wordreel.hubness import Method
from wordreel.search.searcher import Searcher


@dataclass(frozen=True)
class Report:
    """Runs with everything that is told about them."""

    facts: dict[str, Any]
    runs: tuple[Run, ...]
    queries: Queries
    subject: Subject

    def page(self, look: Look | None = None) -> str:
        """The HTML page, with pictures where `look` can give them."""
        return page(self.facts, self.runs, replace(self.subject, look=look))

    def write(self, prefix: Path, look: Look | None = None) -> list[Path]:
        """PREFIX.json, .md, .tex, .html and .ranks.npz."""
        return report_files.write(prefix, self.facts, self.runs, self.queries, self.page(look))


@dataclass(frozen=True)
class Asked:
    """What is to be measured, and what the facts say about how."""

    title: str
    command: str
    inputs: Sequence[Mapping[str, str]]
    directions: Sequence[Way] = ("t2v", "v2t")
    protocol: Protocol = "ce"
    seeds: Sequence[int] = ()
    deviations: Sequence[str] = ()  # from the protocol that was named


def of_matrix(
    similarities: Array, captions: Captions, asked: Asked, normalisation: Normalisation | None = None
) -> Report:
    """A report on `similarities [captions, videos]`; of names and texts nothing is known."""
    runs = measure(similarities, captions, asked.directions, asked.protocol, normalisation)
    queries = report_files.queries_of(captions.owner, columns=captions.videos)
    measured = {
        "kind": "matrix",
        "videos": captions.videos,
        "captions": int(captions.valid.sum()),
        **report_files.digests(queries),
        **_told(asked, normalisation),
    }
    facts = report_files.facts_of(asked.title, asked.command, asked.inputs, measured, runs, seeds=asked.seeds)
    return Report(facts, tuple(runs), queries, Subject(captions.owner))


def of_seeds(reports: Sequence[Report]) -> dict[str, Any]:
    """The facts of several reports on the same queries, one per seed: mean ± standard deviation."""
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


def of_library(
    searcher: Searcher, scored: libraries.Scored, asked: Asked, normalisation: Normalisation | None = None
) -> Report:
    """A report on what a library (with any model) thinks of captions: see `library.score`."""
    captions = scored.captions
    runs = measure(scored.similarities, captions, asked.directions, asked.protocol, normalisation)
    queries = report_files.queries_of(captions.owner, scored.texts, scored.videos)
    measured = {
        "kind": "library",
        "model": searcher.model.name,
        "fingerprint": searcher.model.fingerprint,
        "experts": {name: round(float(np.mean(speaks)), 4) for name, speaks in scored.experts.items()},
        "videos": captions.videos,
        "captions": len(captions),
        "missing": scored.missing,
        **report_files.digests(queries),
        "files_sha256": scored.files_sha256,
        **_told(asked, normalisation),
    }
    groups: dict[str, list[Group]] = {}
    texts = next((run for run in runs if run.direction == "t2v"), None)
    if texts is not None:
        partly = {name: s for name, s in scored.experts.items() if any(s) and not all(s)}
        groups = {
            "length": by_length(texts, scored.texts),
            "experts": by_expert(texts, captions.owner, partly),
        }
    facts = report_files.facts_of(
        asked.title, asked.command, asked.inputs, measured, runs, groups, asked.seeds
    )
    return Report(facts, tuple(runs), queries, Subject(captions.owner, scored.texts, scored.videos))


def _told(asked: Asked, how: Normalisation | None) -> dict[str, Any]:
    told: dict[str, Any] = {"deviations": list(asked.deviations)}
    if how is not None:
        settings: Any = how.method
        told["normalisation"] = {"method": how.method.name, "parameters": asdict(settings)}
    return told


def normalise(
    method: Method, bank: Array | None, source: str, automatic: bool = False, seen: bool = False
) -> Normalisation:
    """A normalisation under its honest label; `automatic` chooses β from the bank without labels.

    A bank of test queries (`seen`) makes any method transductive.
    """
    if automatic and bank is not None:
        method = querybank.with_automatic_beta(method, bank)
    size = 0 if bank is None else len(bank)
    return Normalisation(method, bank, querybank.label(method, source, size, seen))
