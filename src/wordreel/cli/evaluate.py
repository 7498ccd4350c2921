"""`wordreel evaluate`."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.common import JsonOption, LibraryOption, OnOption, counter, print_json, printable
from wordreel.cli.evaluate_inputs import (
    ARRAYS,
    BankOptions,
    CaptionOptions,
    CaptionSource,
    Counting,
    GroupingOptions,
    JudgedOptions,
    QueryBank,
    ReportOptions,
    caption_counts,
    command,
    normalisations_of,
)
from wordreel.cli.evaluate_pictures import INSTANCE, evaluate_pictures
from wordreel.cli.option_groups import expand_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordreel.api import Library
    from wordreel.evaluate.folds import Fold
    from wordreel.evaluate.library import EncodeBlocks
    from wordreel.evaluate.rankings import Normalisation
    from wordreel.evaluate.report import EvaluationReport, ReportRequest
    from wordreel.evaluate.retrieval import Captions
    from wordreel.hubness import Direction
    from wordreel.types import Array

Result = tuple[dict[str, Any], list[Path]]


@expand_options
def evaluate(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE…",
            help="Similarities [captions, videos] (.npy, .npz, .safetensors, .h5, .pkl, .pt); or captions of "
            "a library's videos (.csv, .jsonl, .json, FILE.json:key); or a protocol's name, with --data; or "
            "a TREC run, with --qrels. Several matrices, of several seeds, give mean ± standard deviation.",
        ),
    ],
    library: LibraryOption,
    captions: CaptionOptions,
    grouping: GroupingOptions,
    bank: BankOptions,
    report: ReportOptions,
    judged: JudgedOptions,
    direction: Annotated[
        Literal["t2v", "v2t", "both"],
        typer.Option(help="Direction: text to video (t2v), video to text (v2t) or both."),
    ] = "both",
    v2t: Annotated[
        Literal["ce", "clip"] | None,
        typer.Option(
            help="How video-to-text ranks are counted: by the best caption (ce) or by groups (clip).",
            show_default="the protocol's, or ce",
        ),
    ] = None,
    modality: Annotated[
        Literal["video", "image", "audio"] | None,
        typer.Option(help="What is searched, for the tables.", show_default="the protocol's, or video"),
    ] = None,
    on: OnOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval: of a similarity matrix, a library with captions of its videos, or a TREC run.

    Plain numbers come first, and every number carries its post-processing label. Those of test-is and dsl are
    labelled transductive: they use all test queries.

    Example: wordreel evaluate captions.json --ids splits.json:official.test --out results/mine
    Example: wordreel evaluate sims.npy --captions-per-video 20 --v2t clip
    Example: wordreel evaluate sims.npy --bank train.npy --method dis --method test-is --method dsl
    Example: wordreel evaluate run.trec --qrels qrels.txt
    Example: wordreel evaluate cub --data CUB_200_2011 --embeddings pictures.npy
    """
    from wordreel.hubness import Direction

    directions = tuple(Direction) if direction == "both" else (Direction(direction),)
    title = report.title or Path(sources[0]).name
    counting = Counting(title, directions, v2t, tuple(report.seed or ()), modality)
    matrices = captions.data is None and all(Path(each).suffix.lower() in ARRAYS for each in sources)
    _check_options(sources, matrices, captions, grouping, bank, report, judged)
    if on is not None and (matrices or judged != JudgedOptions()):
        raise typer.BadParameter("--on encodes captions of a library; other sources are ranked here.")
    if judged.embeddings is not None or sources[0] in INSTANCE:
        if report.out is not None or report.exports:
            raise typer.BadParameter("--out and the exports are for captions; --json prints these figures.")
        source = CaptionSource(sources[0], captions.data, captions.split, captions.ids)
        evaluate_pictures(source, judged, bank, as_json)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if judged.qrels is not None:
            facts, written = _run(Path(sources[0]), judged.qrels, counting, report.out)
        elif matrices:
            facts, written = _matrices([Path(path) for path in sources], grouping, bank, counting, report)
        else:
            source = CaptionSource(sources[0], captions.data, captions.split, captions.ids)
            facts, written = _library(source, library, bank, counting, report, on)
    _print(facts, written, [str(warning.message) for warning in caught], as_json)


def _check_options(
    sources: Sequence[str],
    matrices: bool,
    captions: CaptionOptions,
    grouping: GroupingOptions,
    bank: BankOptions,
    report: ReportOptions,
    judged: JudgedOptions,
) -> None:
    """Refuse options that do not belong to the kind of source."""
    if report.save is not None and report.save.suffix != ".npy":
        raise typer.BadParameter("--save writes a NumPy file; give it a name that ends in .npy.")
    if judged.qrels is not None:
        if len(sources) > 1 or matrices or captions != CaptionOptions() or report.exports or report.save:
            raise typer.BadParameter("--qrels goes with one TREC run, and with no option of other sources.")
        return
    if matrices and (report.save or captions.ids or captions.split):
        raise typer.BadParameter("--save, --ids and --split are for captions, not for a matrix.")
    if len(sources) > 1 and not matrices:
        raise typer.BadParameter("several sources must all be matrices, one per seed.")
    if len(sources) > 1 and (report.exports or grouping.folds):
        raise typer.BadParameter("export one matrix at a time, and cut one into folds.")
    if report.exports and grouping.folds:
        raise typer.BadParameter("export a whole matrix, not its folds.")
    if not matrices:
        bank.of_source(0, 1)
    if not matrices and (grouping.given or bank.video_bank):
        raise typer.BadParameter(
            "--captions-per-video, --counts, --mask, --folds and --video-bank are for a matrix."
        )


def _print(facts: dict[str, Any], written: Sequence[Path], warned: Sequence[str], as_json: bool) -> None:
    from wordreel.evaluate.tables import plain_text, rows_of

    measured = facts["measured"]
    notes = [*measured["deviations"], *warned]
    if measured.get("missing"):
        notes.append(f"{measured['missing']} captioned videos are not in the library and were left out")
    for note in dict.fromkeys(notes):
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json(facts)
        return
    typer.echo(plain_text(rows_of(facts["runs"])), nl=False)
    if written:
        typer.echo(f"wrote {', '.join(printable(path) for path in written)}", err=True)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Similarities with everything that a report on them needs."""

    similarities: Array
    captions: Captions
    banks: Mapping[Direction, QueryBank]
    request: ReportRequest

    def part(self, fold: Fold) -> _Scored:
        """One fold; a bank's columns are the gallery's."""
        from wordreel.hubness import Direction

        spans = {Direction.TEXT_TO_VIDEO: fold.columns, Direction.VIDEO_TO_TEXT: fold.rows}
        return replace(
            self,
            similarities=self.similarities[fold.rows, fold.columns],
            captions=fold.captions,
            banks={way: replace(bank, rows=bank.rows[:, spans[way]]) for way, bank in self.banks.items()},
        )


def _matrices(
    paths: Sequence[Path],
    grouping: GroupingOptions,
    bank: BankOptions,
    counting: Counting,
    options: ReportOptions,
) -> Result:
    from wordreel.evaluate.folds import split_folds
    from wordreel.evaluate.report import of_folds, of_matrix, of_seeds
    from wordreel.evaluate.report_files import write_tables

    def report(scored: _Scored) -> EvaluationReport:
        hows = _normalisations(bank, scored)
        with _exported(options, counting, hows) as (hows, scores):
            report = of_matrix(scored.similarities, scored.captions, scored.request, hows)
            _export(options, scores(scored.similarities), scored.captions, counting, ())
        return report

    seeds = [
        _read_matrix(path, grouping, bank.of_source(number, len(paths)), counting)
        for number, path in enumerate(paths)
    ]
    if grouping.folds:
        facts = of_folds([report(seeds[0].part(f)) for f in split_folds(seeds[0].captions, grouping.folds)])
    else:
        reports = [report(scored) for scored in seeds]
        if len(reports) == 1:
            return reports[0].facts, reports[0].write(options.out) if options.out else []
        facts = of_seeds(reports)
    return facts, write_tables(options.out, facts) if options.out else []


def _read_matrix(path: Path, grouping: GroupingOptions, bank: BankOptions, counting: Counting) -> _Scored:
    from wordreel.evaluate.matrices import read_captioned, read_matrix
    from wordreel.evaluate.report_files import input_of
    from wordreel.evaluate.retrieval import arrange

    sims, masks, note = read_captioned(path, grouping.key, grouping.mask)
    inputs = [input_of("similarities", path)]
    if grouping.mask is not None:
        inputs.append(input_of("mask", grouping.mask))
    if note:
        typer.echo(f"note: {note}", err=True)
    captions = arrange(sims.shape[1], sims.shape[0], caption_counts(grouping.each, sims.shape[1]), masks)
    banks = {}
    for direction, file in bank.files.items():
        banks[direction] = QueryBank(read_matrix(file, grouping.key), file.name, file.samefile(path))
        inputs.append(input_of("bank", file))
    return _Scored(sims, captions, banks, counting.request(inputs))


def _library(
    source: CaptionSource,
    library: Path,
    bank: BankOptions,
    counting: Counting,
    options: ReportOptions,
    on: str | None,
) -> Result:
    from wordreel.api import Library
    from wordreel.datasets import protocols
    from wordreel.evaluate import library as libraries
    from wordreel.evaluate.folds import split_folds
    from wordreel.evaluate.report import of_folds, of_library
    from wordreel.evaluate.report_files import write_tables
    from wordreel.evaluate.report_frames import FrameGrabber
    from wordreel.hubness import Direction

    split = source.read()
    inputs = source.inputs("captions")
    named = source.data is not None and source.source in protocols.names()
    protocol = protocols.load(source.source) if named else None
    opened = Library(library, create=False)
    searcher = opened.searcher()
    banks = {}
    with _encoder(opened, on) as encode:
        matched = libraries.score(
            searcher, split.captions, save=options.save, on_progress=counter("captions"), encode=encode
        )
        if bank.bank:
            bank_source = CaptionSource(bank.bank[0], None, None, bank.bank_ids)
            others = bank_source.read().captions
            # A bank that holds captions of the videos that are looked for has seen the test.
            seen = any(texts == others.get(name) for name, texts in split.captions.items())
            texts = [text for group in others.values() for text in group]
            rows = libraries.similarities(
                searcher, texts, matched.contents, on_progress=counter("bank queries"), encode=encode
            )
            banks[Direction.TEXT_TO_VIDEO] = QueryBank(rows, bank.source, seen)
            inputs += bank_source.inputs("bank")
    present = set(matched.videos)
    here = replace(split, items=tuple(item for item in split.items if item.id in present))
    notes = protocols.deviations(protocol, here) if protocol else ()
    scored = _Scored(matched.similarities, matched.captions, banks, counting.request(inputs, protocol, notes))
    if protocol and protocol.folds:
        reports = [
            of_library(searcher, matched.part(fold), scored.request, _normalisations(bank, scored.part(fold)))
            for fold in split_folds(matched.captions, protocol.folds)
        ]
        facts = of_folds(reports)
        return facts, write_tables(options.out, facts) if options.out else []
    hows = _normalisations(bank, scored)
    with _exported(options, counting, hows) as (hows, scores):
        report = of_library(searcher, matched, scored.request, hows)
        _export(options, scores(matched.similarities), matched.captions, counting, matched)
    if options.out is None:
        return report.facts, []
    with FrameGrabber(searcher) as frames:

        def frame_of(column: int, text: str | None) -> str | None:
            return frames.moment(matched.contents[column], text)

        return report.facts, report.write(options.out, frame_of if options.frames else None)


@contextmanager
def _encoder(opened: Library, on: str | None) -> Iterator[EncodeBlocks | None]:
    """What encodes texts on the workers that `on` names; None to encode them in this process."""
    if on is None:
        yield None
        return
    from wordreel.scale.library_workers import LibraryWorkers
    from wordreel.scale.open_executor import open_executor

    with redirect_stdout(sys.stderr), open_executor(on) as executor:  # Ray prints
        yield LibraryWorkers.of(executor, opened.store, opened.weights, opened.model).encode


def _normalisations(bank: BankOptions, scored: _Scored) -> list[Normalisation]:
    return normalisations_of(bank.methods(), scored.similarities, scored.captions, scored.banks, bank.device)


@contextmanager
def _exported(
    options: ReportOptions, counting: Counting, hows: list[Normalisation]
) -> Iterator[tuple[list[Normalisation], Callable[[Array], Array]]]:
    """Have the normalised scores written where they are to be exported; afterwards, `scores` reads them."""
    import numpy as np

    from wordreel.hubness import Direction

    direction = counting.directions[0]
    exported = [how for how in hows if how.direction is direction]
    if options.export_trec is None or not exported:
        yield hows, lambda similarities: similarities
        return
    if len(exported) > 1:
        raise typer.BadParameter("--export-trec writes one ranking; name one --method.")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "scores.npy"

        def scores(similarities: Array) -> Array:
            rows: Array = np.load(saved, mmap_mode="r")
            return rows if direction is Direction.TEXT_TO_VIDEO else rows.T

        yield [replace(how, save=saved) if how.direction is direction else how for how in hows], scores


def _export(
    options: ReportOptions, scores: Array, captions: Captions, counting: Counting, scored: Any
) -> None:
    """Write the exchange files that were requested: of texts that look for videos, unless only videos ask."""
    from wordreel.evaluate import exchange

    direction = counting.directions[0]
    ids = exchange.captioned_ids(captions, scored.videos if scored else ())
    if options.export_trec:
        exchange.export_run(options.export_trec, scores, captions, ids, direction)
    if options.export_qrels:
        exchange.export_qrels(options.export_qrels, captions, ids, direction)
    if options.export_beir:
        texts = scored.texts if scored else ()
        exchange.export_beir(options.export_beir, captions, ids, texts, direction)


def _run(path: Path, judgements: Path, counting: Counting, out: Path | None) -> Result:
    from wordreel.evaluate.exchange import QRELS, evaluate_run, read_judgements
    from wordreel.evaluate.report_files import facts_of, input_of, write_tables

    qrels, items = read_judgements(judgements)
    run = evaluate_run(path, qrels, items, counting.directions[0])
    file = judgements / QRELS if judgements.is_dir() else judgements
    inputs = [input_of("run", path), input_of("qrels", file)]
    measured = {"kind": "run", "queries": len(run.answered), "items": run.items, "deviations": []}
    facts = facts_of(counting.title, command(), inputs, measured, [run], seeds=counting.seeds)
    return facts, write_tables(out, facts) if out else []
