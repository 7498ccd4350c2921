"""`wordreel evaluate`: measure retrieval, one verb for each kind of source."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, VerbGroup, print_json, printable
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.lab.evaluate_options import (
    BankOptions,
    CountingOptions,
    DataOption,
    ExportOptions,
    FoldsOption,
    GroupingOptions,
    IdsOption,
    MethodOptions,
    ReportOptions,
    SplitOption,
)
from wordreel.cli.lab.evaluate_sources import (
    CaptionSource,
    Counting,
    Evaluated,
    evaluate_library,
    evaluate_matrices,
    evaluate_run,
)

app = VerbGroup(
    "Measure retrieval: similarity matrices, a library with captions, a TREC run, pictures.",
    no_args_is_help=True,
)


@app.command("matrix")
@expand_options
def matrix(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SIMS…",
            help="Similarities [captions, videos] (.npy, .npz, .safetensors, .h5, .pkl, .pt). Several, of "
            "several seeds, give mean ± standard deviation.",
        ),
    ],
    grouping: GroupingOptions,
    bank: BankOptions,
    methods: MethodOptions,
    counting: CountingOptions,
    report: ReportOptions,
    exports: ExportOptions,
    folds: FoldsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure similarity matrices [captions, videos].

    Plain numbers come first, and every number carries its post-processing label. Those of test-is and dsl are
    labelled transductive: they use all test queries.

    Example: wordreel evaluate matrix sims.npy --captions-per-video 20 --v2t clip
    Example: wordreel evaluate matrix sims.npy --bank train.npy --method dis --method test-is --method dsl
    """
    if len(sources) > 1 and (exports or folds):
        raise typer.BadParameter("export one matrix at a time, and cut one into folds.")
    if exports and folds:
        raise typer.BadParameter("export a whole matrix, not its folds.")
    how = Counting(sources[0].name, counting, report)
    _report(lambda: evaluate_matrices(sources, grouping, bank, methods, how, exports, folds), as_json)


@app.command("captions")
@expand_options
def captions(
    source: Annotated[
        str,
        typer.Argument(
            metavar="CAPTIONS",
            help="Captions of the library's videos (.csv, .jsonl, .json, FILE.json:key), or a protocol's "
            "name, with --data.",
        ),
    ],
    library: LibraryOption,
    methods: MethodOptions,
    counting: CountingOptions,
    report: ReportOptions,
    exports: ExportOptions,
    save: Annotated[Path | None, typer.Option(metavar="SIMS.npy", help="Write the similarities.")] = None,
    data: DataOption = None,
    split: SplitOption = None,
    ids: IdsOption = None,
    bank: Annotated[
        str | None, typer.Option(help="Report a normalised ranking too, by this bank of captions.")
    ] = None,
    bank_ids: Annotated[str | None, typer.Option(help="Only these ids of the bank.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a library by captions of its videos.

    Each caption searches as `wordreel search` does, for its own video.

    Example: wordreel evaluate captions captions.json --ids splits.json:official.test --out results/mine
    """
    if save is not None and save.suffix != ".npy":
        raise typer.BadParameter("--save writes a NumPy file; give it a name that ends in .npy.")
    queries = CaptionSource(source, data, split, ids)
    banked = None if bank is None else CaptionSource(bank, ids=bank_ids)
    how = Counting(Path(source).name, counting, report)
    _report(lambda: evaluate_library(queries, library, banked, methods, how, save, exports), as_json)


@app.command("run")
@expand_options
def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A TREC run.")],
    qrels: Annotated[
        Path,
        typer.Argument(metavar="QRELS", help="Right answers: TREC's qrels, or BEIR's test.tsv."),
    ],
    report: ReportOptions,
    direction: Annotated[
        Literal["t2v", "v2t"], typer.Option(help="Direction: text to video (t2v) or video to text (v2t).")
    ] = "t2v",
    as_json: JsonOption = False,
) -> None:
    """Measure a ranking of another system.

    Example: wordreel evaluate run run.trec qrels.txt
    """
    how = Counting(path.name, CountingOptions(direction), report)
    _report(lambda: evaluate_run(path, qrels, how), as_json)


@app.command("pictures")
@expand_options
def pictures(
    protocol: Annotated[Literal["cub", "sop"], typer.Argument(help="The dataset.")],
    embeddings: Annotated[Path, typer.Argument(help="Embeddings [pictures, dim] in the order of the split.")],
    data: Annotated[Path, typer.Option(help="The dataset's folder.")],
    methods: MethodOptions,
    split: Annotated[str | None, typer.Option(help="Which split.", show_default="test")] = None,
    bank: Annotated[
        Path | None, typer.Option(help="Embeddings [pictures, dim] of training pictures.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure picture retrieval by class.

    Every picture of a split is a query for the others of its class.

    Example: wordreel evaluate pictures cub pictures.npy --data CUB_200_2011
    """
    from wordreel.errors import EvaluationError
    from wordreel.lab.datasets import protocols
    from wordreel.lab.evaluate.instance import embedding_metrics
    from wordreel.lab.evaluate.matrices import read_matrix

    chosen = methods.chosen(bank is not None)
    if any(automatic for _, automatic in chosen):
        raise typer.BadParameter("--beta auto is for captions; give a number here.")
    rules = protocols.load(protocol)
    items = CaptionSource(protocol, data, split).read()
    vectors = read_matrix(embeddings)
    if len(vectors) != len(items.items):
        raise EvaluationError(
            f"{embeddings} holds {len(vectors)} embeddings, but split {items.name!r} of "
            f"{items.dataset} has {len(items.items)} pictures"
        )
    labels = [item.label for item in items.items]
    rows = None if bank is None else read_matrix(bank)
    seen = bank is not None and bank.samefile(embeddings)
    runs = [("none", False, embedding_metrics(vectors, labels, rules.recall))]
    for method, _ in chosen:
        label = method.label(bank.name if bank else "", 0 if rows is None else len(rows), seen)
        metrics = embedding_metrics(vectors, labels, rules.recall, method, rows)
        runs.append((label, method.transductive or seen, metrics))
    entries = [
        {"postprocessing": label, "transductive": transductive, **asdict(metrics)}
        for label, transductive, metrics in runs
    ]
    for note in protocols.deviations(rules, items):
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json({"protocol": protocol, "split": items.name, "runs": entries})
    else:
        _print_pictures(entries)


def _print_pictures(entries: list[dict[str, Any]]) -> None:
    from wordreel.lab.reports.tables import plain_text

    plain = entries[0]
    typer.echo(f"{plain['queries']} pictures ask for others of their class among {plain['items']}")
    rows = [["post-processing", *(f"R@{k}" for k in plain["recall"]), "mAP", "mAP@R"]]
    for entry in entries:
        figures = [*entry["recall"].values(), entry["mean_average_precision"], entry["map_at_r"]]
        rows.append([entry["postprocessing"], *(f"{value:.1f}" for value in figures)])
    typer.echo(plain_text(rows), nl=False)


def _report(measure: Callable[[], Evaluated], as_json: bool) -> None:
    """Print what was measured, with notes and warnings first."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        facts, written = measure()
    _print(facts, written, [str(warning.message) for warning in caught], as_json)


def _print(facts: dict[str, Any], written: Sequence[Path], warned: Sequence[str], as_json: bool) -> None:
    from wordreel.lab.reports.tables import plain_text, rows_of

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
