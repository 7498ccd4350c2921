"""Measure similarity matrices: one, its folds, or one for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wordreel.cli.lab.evaluate_inputs import Counting
from wordreel.cli.lab.evaluate_options import BankOptions, ExportOptions, GroupingOptions, MethodOptions
from wordreel.cli.lab.evaluate_scored import Evaluated, Scored, export, keep_scores, read_scored

if TYPE_CHECKING:
    from wordreel.lab.reports.report import EvaluationReport, ReportRequest


def evaluate_matrices(
    paths: Sequence[Path],
    grouping: GroupingOptions,
    bank: BankOptions,
    methods: MethodOptions,
    counting: Counting,
    out: Path | None,
    exports: ExportOptions,
) -> Evaluated:
    from wordreel.lab.evaluate.folds import split_folds
    from wordreel.lab.reports.report import of_folds, of_matrix, of_seeds
    from wordreel.lab.reports.report_files import write_tables

    def report(scored: Scored, request: ReportRequest) -> EvaluationReport:
        hows = scored.normalisations(methods)
        with keep_scores(exports, counting, hows) as (hows, scores):
            report = of_matrix(scored.similarities, scored.captions, request, hows)
            export(exports, scores(scored.similarities), scored.captions, counting, ())
        return report

    seeds = []
    for number, path in enumerate(paths):
        own = bank.of_source(number, len(paths))
        scored, note = read_scored(path, grouping, own)
        if note:
            typer.echo(f"note: {note}", err=True)
        seeds.append((scored, counting.request(_inputs(path, grouping, own))))
    if grouping.folds:
        scored, request = seeds[0]
        folds = split_folds(scored.captions, grouping.folds)
        facts = of_folds([report(scored.part(fold), request) for fold in folds])
    else:
        reports = [report(scored, request) for scored, request in seeds]
        if len(reports) == 1:
            return reports[0].facts, reports[0].write(out) if out else []
        facts = of_seeds(reports)
    return facts, write_tables(out, facts) if out else []


def _inputs(path: Path, grouping: GroupingOptions, bank: BankOptions) -> list[dict[str, str]]:
    """The files behind the figures, with their checksums."""
    from wordreel.lab.reports.report_files import input_of

    masks = [] if grouping.mask is None else [input_of("mask", grouping.mask)]
    return [input_of("similarities", path), *masks, *(input_of("bank", file) for file in bank.files.values())]
