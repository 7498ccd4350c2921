"""`wordreel evaluate`."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.common import JsonOption, LibraryOption, counter, print_json, printable
from wordreel.cli.evaluate_inputs import (
    ARRAYS,
    BankOptions,
    CaptionOptions,
    CaptionSource,
    Counting,
    GroupingOptions,
    JudgedOptions,
    ReportOptions,
    caption_counts,
    command,
)
from wordreel.cli.option_groups import expand_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordreel.evaluate.rankings import Normalisation
    from wordreel.evaluate.report import EvaluationReport
    from wordreel.evaluate.retrieval import Array, Captions

INSTANCE = ("cub", "sop")  # protocols of pictures that are searched by class
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
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval: of a similarity matrix, a library with captions of its videos, or a TREC run.

    Plain numbers come first, and every number carries its post-processing label.

    Example: wordreel evaluate captions.json --ids splits.json:official.test --out results/mine
    Example: wordreel evaluate sims.npy --captions-per-video 20 --v2t clip
    Example: wordreel evaluate run.trec --qrels qrels.txt
    Example: wordreel evaluate cub --data CUB_200_2011 --embeddings pictures.npy
    """
    from wordreel.hubness import Direction

    directions = tuple(Direction) if direction == "both" else (Direction(direction),)
    counting = Counting(report.title or Path(sources[0]).name, directions, v2t, tuple(report.seed or ()))
    matrices = captions.data is None and all(Path(each).suffix.lower() in ARRAYS for each in sources)
    _check_options(sources, matrices, captions, grouping, report, judged)
    if judged.embeddings is not None or sources[0] in INSTANCE:
        _instances(CaptionSource(sources[0], captions.data, captions.split, captions.ids), judged, as_json)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if judged.qrels is not None:
            facts, written = _run(Path(sources[0]), judged.qrels, counting, report.out)
        elif matrices:
            facts, written = _matrices([Path(path) for path in sources], grouping, bank, counting, report)
        else:
            source = CaptionSource(sources[0], captions.data, captions.split, captions.ids)
            facts, written = _library(source, library, bank, counting, report)
    _print(facts, written, [str(warning.message) for warning in caught], as_json)


def _check_options(
    sources: Sequence[str],
    matrices: bool,
    captions: CaptionOptions,
    grouping: GroupingOptions,
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
    if len(sources) > 1 and report.exports:
        raise typer.BadParameter("export one matrix at a time.")
    if not matrices and grouping.given:
        raise typer.BadParameter("--captions-per-video, --counts and --mask are for a matrix.")


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


def _matrices(
    paths: Sequence[Path],
    grouping: GroupingOptions,
    bank: BankOptions,
    counting: Counting,
    options: ReportOptions,
) -> Result:
    from wordreel.evaluate.report import of_seeds
    from wordreel.evaluate.report_files import write_tables

    reports = [_matrix(path, grouping, bank, counting, options) for path in paths]
    if len(reports) > 1:
        facts = of_seeds(reports)
        return facts, write_tables(options.out, facts) if options.out else []
    return reports[0].facts, reports[0].write(options.out) if options.out else []


def _matrix(
    path: Path, grouping: GroupingOptions, bank: BankOptions, counting: Counting, options: ReportOptions
) -> EvaluationReport:
    from wordreel.evaluate.matrices import read_captioned, read_matrix
    from wordreel.evaluate.rankings import normalisation
    from wordreel.evaluate.report import of_matrix
    from wordreel.evaluate.report_files import input_of
    from wordreel.evaluate.retrieval import arrange

    sims, masks, note = read_captioned(path, grouping.key, grouping.mask)
    inputs = [input_of("similarities", path)]
    if grouping.mask is not None:
        inputs.append(input_of("mask", grouping.mask))
    if note:
        typer.echo(f"note: {note}", err=True)
    captions = arrange(sims.shape[1], sims.shape[0], caption_counts(grouping.each, sims.shape[1]), masks)
    method, rows, seen = bank.build(), None, False
    if bank.bank and method is not None and not method.transductive:
        rows = read_matrix(Path(bank.bank), grouping.key)
        seen = Path(bank.bank).samefile(path)
        inputs.append(input_of("bank", Path(bank.bank)))
    how = (
        None
        if method is None
        else normalisation(
            method, rows, bank.source, automatic=bank.beta == "auto", transductive=seen, device=bank.device
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        how = _saving(how, options, folder)
        report = of_matrix(sims, captions, counting.request(inputs), how)
        _export(options, _exported(sims, how), captions, counting, ())
    return report


def _library(
    source: CaptionSource, library: Path, bank: BankOptions, counting: Counting, options: ReportOptions
) -> Result:
    from wordreel.api import Library
    from wordreel.datasets import protocols
    from wordreel.evaluate import library as libraries
    from wordreel.evaluate.rankings import normalisation
    from wordreel.evaluate.report import of_library
    from wordreel.evaluate.report_frames import FrameGrabber

    split = source.read()
    inputs = source.inputs("captions")
    named = source.data is not None and source.source in protocols.names()
    protocol = protocols.load(source.source) if named else None
    searcher = Library(library, create=False).searcher()
    scored = libraries.score(searcher, split.captions, save=options.save, on_progress=counter("captions"))
    method, rows, seen = bank.build(), None, False
    if bank.bank and method is not None and not method.transductive:
        bank_source = CaptionSource(bank.bank, None, None, bank.bank_ids)
        others = bank_source.read().captions
        # A bank that holds captions of the videos that are looked for has seen the test.
        seen = any(texts == others.get(name) for name, texts in split.captions.items())
        texts = [text for group in others.values() for text in group]
        rows = libraries.similarities(searcher, texts, scored.contents, on_progress=counter("bank queries"))
        inputs += bank_source.inputs("bank")
    how = (
        None
        if method is None
        else normalisation(
            method, rows, bank.source, automatic=bank.beta == "auto", transductive=seen, device=bank.device
        )
    )
    present = set(scored.videos)
    here = replace(split, items=tuple(item for item in split.items if item.id in present))
    notes = protocols.deviations(protocol, here) if protocol else ()
    default: Any = protocol.v2t if protocol else None
    request = counting.request(inputs, default, notes)
    with tempfile.TemporaryDirectory() as folder:
        how = _saving(how, options, folder)
        report = of_library(searcher, scored, request, how)
        _export(options, _exported(scored.similarities, how), scored.captions, counting, scored)
    if options.out is None:
        return report.facts, []
    with FrameGrabber(searcher) as frames:

        def frame_of(column: int, text: str | None) -> str | None:
            return frames.moment(scored.contents[column], text)

        return report.facts, report.write(options.out, frame_of if options.frames else None)


def _saving(how: Normalisation | None, options: ReportOptions, folder: str) -> Normalisation | None:
    """Have the normalised scores written where they are to be exported."""
    if how is None or options.export_trec is None:
        return how
    return replace(how, save=Path(folder) / "scores.npy")


def _exported(similarities: Array, how: Normalisation | None) -> Array:
    import numpy as np

    return similarities if how is None or how.save is None else np.load(how.save, mmap_mode="r")


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


def _instances(source: CaptionSource, judged: JudgedOptions, as_json: bool) -> None:
    from wordreel.datasets import protocols
    from wordreel.errors import EvaluationError
    from wordreel.evaluate.instance import embedding_metrics
    from wordreel.evaluate.matrices import read_matrix

    if source.source not in INSTANCE or source.data is None or judged.embeddings is None:
        raise typer.BadParameter(f"{' and '.join(INSTANCE)} are measured with --data and --embeddings.")
    protocol = protocols.load(source.source)
    split = source.read()
    embeddings = read_matrix(judged.embeddings)
    if len(embeddings) != len(split.items):
        raise EvaluationError(
            f"{judged.embeddings} holds {len(embeddings)} embeddings, but split {split.name!r} of "
            f"{split.dataset} has {len(split.items)} pictures"
        )
    metrics = embedding_metrics(embeddings, [item.label for item in split.items], protocol.recall)
    for note in protocols.deviations(protocol, split):
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json(
            {"protocol": source.source, "split": split.name, "postprocessing": "none", **asdict(metrics)}
        )
        return
    typer.echo(f"{metrics.queries} pictures ask for others of their class among {metrics.items}")
    columns = {f"R@{k}": value for k, value in metrics.recall.items()}
    columns |= {"mAP": metrics.mean_average_precision, "mAP@R": metrics.map_at_r}
    typer.echo(f"{'post-processing':<17}" + "".join(f"{name:>8}" for name in columns))
    typer.echo(f"{'none':<17}" + "".join(f"{value:>8.1f}" for value in columns.values()))
