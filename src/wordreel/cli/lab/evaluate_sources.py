"""What `wordreel evaluate` measures: captions, matrices and libraries, on their way to a report."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wordreel.cli.console.common import counter
from wordreel.cli.lab.evaluate_options import (
    BankOptions,
    CountingOptions,
    ExportOptions,
    GroupingOptions,
    MethodOptions,
    ReportOptions,
)

if TYPE_CHECKING:
    from wordreel.hubness import Direction
    from wordreel.lab.datasets.protocols import EvaluationProtocol
    from wordreel.lab.datasets.types import Split
    from wordreel.lab.evaluate.library import ScoredCaptions
    from wordreel.lab.evaluate.normalised_rankings import Normalisation
    from wordreel.lab.evaluate.runs import Fold
    from wordreel.lab.reports.report import EvaluationReport, ReportRequest
    from wordreel.retrieval.caption_ranks import Captions
    from wordreel.types import Array

ANNOTATIONS = (".json", ".jsonl", ".csv", ".tsv", ".txt")
Evaluated = tuple[dict[str, Any], list[Path]]
"""The facts of a report, and the files that were written."""


def command() -> str:
    """Return the command line, with files by their base names."""
    return shlex.join(["wordreel", *(Path(word).name if "/" in word else word for word in sys.argv[1:])])


@dataclass(frozen=True)
class CaptionSource:
    """Captions to read: a file, an address in one, or a named protocol with its data."""

    source: str
    data: Path | None = None
    split: str | None = None
    ids: str | None = None

    @property
    def label(self) -> str:
        """What labels call a bank of these captions."""
        name = Path(self.source).name
        return f"{name} of {Path(self.ids).name}" if self.ids else name

    def read(self) -> Split:
        """Return the captions of the chosen ids."""
        from wordreel.lab.datasets import json_captions, registry

        split = registry.read(self.source, self.split, self.data)
        if not self.ids:
            return split
        items = {item.id: item for item in split.items}
        chosen = dict.fromkeys(json_captions.read_ids(self.ids))
        return replace(split, items=tuple(items[name] for name in chosen if name in items))

    def inputs(self, what: str) -> list[dict[str, str]]:
        """Return the files that are read, with their checksums: one file, or the annotations in a folder."""
        from wordreel.lab.reports.report_files import input_of
        from wordreel.util.text_files import address_file

        path = self.data or address_file(self.source)
        paths = [path]
        if path.is_dir():
            paths = sorted(file for file in path.iterdir() if file.suffix.lower() in ANNOTATIONS)
        inputs = [input_of(what, path) for path in paths]
        return [*inputs, input_of(f"{what}: ids", address_file(self.ids))] if self.ids else inputs


@dataclass(frozen=True)
class Counting:
    """What the report is called, how it counts and where it goes."""

    name: str  # of the report without --title
    options: CountingOptions
    report: ReportOptions

    def request(
        self,
        inputs: Sequence[Mapping[str, str]],
        protocol: EvaluationProtocol | None = None,
        notes: Sequence[str] = (),
    ) -> ReportRequest:
        """Return the request of a report; a protocol says what nobody chose."""
        from wordreel.lab.reports.report import ReportRequest

        v2t: Any = self.options.v2t or (protocol and protocol.v2t) or "ce"
        modality: Any = self.options.modality or (protocol.modality if protocol else "video")
        return ReportRequest(
            self.report.title or self.name,
            command(),
            inputs,
            self.options.directions,
            v2t,
            tuple(self.report.seed or ()),
            tuple(notes),
            modality,
        )

    def write_tables(self, facts: dict[str, Any]) -> Evaluated:
        """Write the tables of a report that has no page of its own, if it is to be written."""
        from wordreel.lab.reports.report_files import write_tables

        return facts, write_tables(self.report.out, facts) if self.report.out else []


@dataclass(frozen=True, eq=False)
class Scored:
    """Similarities `[captions, videos]`, and the banks that normalise them, with no method yet."""

    similarities: Array
    captions: Captions
    banks: Mapping[Direction, Normalisation]

    def part(self, fold: Fold) -> Scored:
        """Return one fold; a bank's columns are the gallery's."""
        from wordreel.hubness import Direction

        spans = {Direction.TEXT_TO_VIDEO: fold.columns, Direction.VIDEO_TO_TEXT: fold.rows}
        return Scored(
            self.similarities[fold.rows, fold.columns],
            fold.captions,
            {
                direction: replace(bank, bank=bank.bank[:, spans[direction]])
                for direction, bank in self.banks.items()
                if bank.bank is not None
            },
        )

    def normalisations(self, methods: MethodOptions) -> list[Normalisation]:
        """Return each method in each direction that it has a bank for; transductive methods need none."""
        from wordreel.hubness import Direction
        from wordreel.lab.evaluate.normalised_rankings import Normalisation, with_automatic_beta

        made = []
        for method, automatic in methods.chosen(bool(self.banks)):
            for direction in Direction:
                bank = Normalisation(method, direction=direction)
                if not method.transductive:
                    if direction not in self.banks:
                        continue
                    bank = self.banks[direction]
                if automatic:
                    texts = direction is Direction.TEXT_TO_VIDEO
                    plain = self.similarities if texts else self.similarities.T
                    columns = None if texts else self.captions.valid
                    rows = plain if bank.bank is None else bank.bank
                    made.append(replace(bank, method=with_automatic_beta(method, rows, columns)))
                else:
                    made.append(replace(bank, method=method))
        return [replace(how, device=methods.device) for how in made]


def bank_of(direction: Direction, rows: Array, source: str, seen: bool) -> Normalisation:
    """Return a bank `[bank queries, gallery]` without a method; `seen` is whether it holds test queries."""
    from wordreel.hubness import make_method
    from wordreel.lab.evaluate.normalised_rankings import Normalisation

    return Normalisation(make_method("none"), rows, source, direction, seen)


def read_captions(grouping: GroupingOptions, rows: int, videos: int, mask: Array | None) -> Captions:
    """Return which rows belong to which video: as many for each, or as a file of counts says."""
    from wordreel.lab.evaluate.matrices import read_counts
    from wordreel.retrieval.caption_ranks import arrange

    counts: Any = None if grouping.counts is None else read_counts(grouping.counts)
    if grouping.captions_per_video is not None:
        counts = [grouping.captions_per_video] * videos
    return arrange(videos, rows, counts, mask)


def read_scored(path: Path, grouping: GroupingOptions, bank: BankOptions) -> tuple[Scored, str | None]:
    """Return a matrix and its banks, and what the user should know of how it was read."""
    from wordreel.lab.evaluate.matrices import read_captioned, read_matrix

    sims, mask, note = read_captioned(path, grouping.key, grouping.mask)
    texts, videos = sims.shape
    is_guess = grouping.captions_per_video is None and grouping.counts is None and mask is None
    if is_guess and texts > videos and texts % videos == 0:
        note = (
            f"{texts} rows and {videos} columns are read as {texts // videos} captions of each video, those "
            "of one video next to each other; say otherwise with --captions-per-video or --counts"
        )
    banks = {
        direction: bank_of(direction, read_matrix(file, grouping.key), file.name, file.samefile(path))
        for direction, file in bank.files.items()
    }
    return Scored(sims, read_captions(grouping, texts, videos, mask), banks), note


def _with_exports(
    scored: Scored,
    methods: MethodOptions,
    counting: Counting,
    exports: ExportOptions,
    report_of: Callable[[list[Normalisation]], EvaluationReport],
    matched: ScoredCaptions | None = None,
) -> EvaluationReport:
    """Make a report, and write files for other programs.

    They are of texts that look for videos, unless only videos ask. A run holds the normalised ranking where
    there is one.
    """
    import numpy as np

    from wordreel.hubness import Direction
    from wordreel.lab.evaluate.trec import CaptionedExport

    direction = counting.options.directions[0]
    hows = scored.normalisations(methods)
    exported = [how for how in hows if how.direction is direction]
    if exports.export_trec and len(exported) > 1:
        raise typer.BadParameter("--export-trec writes one ranking; name one --method.")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "scores.npy"
        if exports.export_trec and exported:
            hows = [replace(how, save=saved) if how.direction is direction else how for how in hows]
        report = report_of(hows)
        export = CaptionedExport(scored.captions, matched.videos if matched else (), direction)
        if exports.export_trec:
            scores = scored.similarities
            if exported:
                rows: Array = np.load(saved, mmap_mode="r")
                scores = rows if direction is Direction.TEXT_TO_VIDEO else rows.T
            export.write_run(exports.export_trec, scores)
    if exports.export_qrels:
        export.write_qrels(exports.export_qrels)
    return report


def evaluate_matrices(
    paths: Sequence[Path],
    grouping: GroupingOptions,
    bank: BankOptions,
    methods: MethodOptions,
    counting: Counting,
    exports: ExportOptions,
    folds: int | None,
) -> Evaluated:
    """Measure similarity matrices: one, its folds, or one for each seed."""
    from wordreel.lab.evaluate.runs import split_folds
    from wordreel.lab.reports.report import of_folds, of_matrix, of_seeds
    from wordreel.lab.reports.report_files import input_of

    reports = []
    for number, path in enumerate(paths):
        banks = bank.of_source(number, len(paths))
        scored, note = read_scored(path, grouping, banks)
        if note:
            typer.echo(f"note: {note}", err=True)
        files = [
            ("similarities", path),
            ("mask", grouping.mask),
            *(("bank", f) for f in banks.files.values()),
        ]
        request = counting.request([input_of(what, file) for what, file in files if file is not None])
        if folds:
            parts = map(scored.part, split_folds(scored.captions, folds))
            return counting.write_tables(of_folds([
                of_matrix(part.similarities, part.captions, request, part.normalisations(methods))
                for part in parts
            ]))  # fmt: skip

        def report_of(hows: list[Normalisation], scored: Scored = scored, request: Any = request) -> Any:
            return of_matrix(scored.similarities, scored.captions, request, hows)

        reports.append(_with_exports(scored, methods, counting, exports, report_of))
    if len(reports) > 1:
        return counting.write_tables(of_seeds(reports))
    return reports[0].facts, reports[0].write(counting.report.out) if counting.report.out else []


def evaluate_library(
    source: CaptionSource,
    library: Path,
    bank: CaptionSource | None,
    methods: MethodOptions,
    counting: Counting,
    save: Path | None,
    exports: ExportOptions,
) -> Evaluated:
    """Measure a library, by captions of its videos."""
    from wordreel.hubness import Direction
    from wordreel.lab.datasets import protocols
    from wordreel.lab.evaluate.library import score, similarities
    from wordreel.lab.evaluate.runs import split_folds
    from wordreel.lab.reports.report import of_folds, of_library
    from wordreel.library import Library

    split = source.read()
    inputs = source.inputs("captions")
    named = source.data is not None and source.source in protocols.names()
    protocol = protocols.load(source.source) if named else None
    searcher = Library(library, create=False).searcher()
    banks = {}
    matched = score(searcher, split.captions, save=save, on_progress=counter("captions"))
    if bank is not None:
        others = bank.read().captions
        # A bank that holds captions of the videos that are looked for has seen the test.
        seen = any(texts == others.get(name) for name, texts in split.captions.items())
        texts = [text for group in others.values() for text in group]
        rows = similarities(searcher, texts, matched.contents, on_progress=counter("bank queries"))
        banks[Direction.TEXT_TO_VIDEO] = bank_of(Direction.TEXT_TO_VIDEO, rows, bank.label, seen)
        inputs += bank.inputs("bank")
    present = set(matched.videos)
    here = replace(split, items=tuple(item for item in split.items if item.id in present))
    request = counting.request(inputs, protocol, protocols.deviations(protocol, here) if protocol else ())
    scored = Scored(matched.similarities, matched.captions, banks)
    if protocol and protocol.folds:
        folds = split_folds(matched.captions, protocol.folds)
        return counting.write_tables(of_folds([
            of_library(searcher, matched.part(fold), request, scored.part(fold).normalisations(methods))
            for fold in folds
        ]))  # fmt: skip
    report = _with_exports(
        scored,
        methods,
        counting,
        exports,
        lambda hows: of_library(searcher, matched, request, hows),
        matched,
    )
    return report.facts, report.write(counting.report.out) if counting.report.out else []


def evaluate_run(path: Path, judgements: Path, counting: Counting) -> Evaluated:
    """Measure a TREC run by its right answers."""
    from wordreel.lab.evaluate.trec import evaluate_run, read_qrels
    from wordreel.lab.reports.report_files import facts_of, input_of

    run = evaluate_run(path, read_qrels(judgements), counting.options.directions[0])
    request = counting.request([input_of("run", path), input_of("qrels", judgements)])
    measured = {"kind": "run", "queries": len(run.answered), "items": run.items, "deviations": []}
    return counting.write_tables(
        facts_of(request.title, request.command, request.inputs, measured, [run], seeds=request.seeds)
    )
