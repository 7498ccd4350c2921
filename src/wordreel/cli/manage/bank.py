"""`wordreel bank …`: build, check and use query banks."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    LibraryOption,
    beta_number,
    counter,
    print_json,
    printable,
)
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.console.terminal import padded
from wordreel.cli.lab.evaluate_inputs import CaptionSource, command
from wordreel.cli.manage.bank_sources import NOWHERE, DataOption, IdsOption, SourceOptions, SplitOption

if TYPE_CHECKING:
    from wordreel.banks.check import BankCheck, BankCheckRow
    from wordreel.banks.manager import BankManager
    from wordreel.catalogue.banks import Bank

app = typer.Typer(
    add_completion=False,
    help="Build, check and use query banks: sample queries that show which videos turn up too often.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, typer.Argument(help="The bank's name.")]


@app.command("build")
@expand_options
def build(
    library: LibraryOption,
    name: NameArgument = "everyday",
    source: SourceOptions = NOWHERE,
    as_json: JsonOption = False,
) -> None:
    """Build a bank from captions, a query log, or the everyday queries that come with wordreel.

    Example: wordreel bank build mine --captions train.json
    """
    from wordreel.library import Library

    queries = source.gather(everyday=name == "everyday")
    with Library(library, create=False) as opened:
        bank = opened.banks.build(name, queries.texts, queries.source, counter("queries"))
    facts = {"name": bank.name, "queries": len(bank), "source": bank.source, "revision": bank.revision}
    if as_json:
        print_json(facts)
        return
    typer.echo(f"Bank {bank.name!r}: {len(bank)} queries from {printable(bank.source)}.")
    typer.echo(f"Check it before searches use it: wordreel bank check {bank.name} --captions FILE")


@app.command("list")
def list_banks(library: LibraryOption, as_json: JsonOption = False) -> None:
    """List the banks of a library and the verdicts of their checks.

    Example: wordreel bank list
    """
    from wordreel.library import Library

    with Library(library, create=False) as opened:
        banks = opened.banks
        rows = [{**asdict(row), "check": _standing(banks.show(row.name), banks)} for row in banks.list()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        name, source = padded(printable(row["name"]), 16), printable(row["source"])
        typer.echo(f"{name} {row['size']:>7} queries  {row['check']:<10} {source}")
    if not rows:
        typer.echo("No banks. Build one from everyday queries: `wordreel bank build`.")


@app.command("show")
def show(
    name: NameArgument,
    library: LibraryOption,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many queries to show.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show a bank: its queries and its last check.

    Example: wordreel bank show mine --limit 50
    """
    from wordreel.library import Library

    with Library(library, create=False) as opened:
        bank, last = opened.banks.show(name), opened.banks.last_check(name)
        standing = _standing(bank, opened.banks)
    if as_json:
        print_json({**asdict(bank), "revision": bank.revision, "check": last and last.report})
        return
    built = datetime.fromtimestamp(bank.made_at).strftime("%Y-%m-%d")
    typer.echo(f"{bank.name}: {len(bank)} queries, built {built} from {printable(bank.source)}")
    for text in bank.texts[:limit]:
        typer.echo(f"  {printable(text)}")
    if len(bank) > limit:
        typer.echo(f"  … and {len(bank) - limit} more")
    typer.echo(f"Check: {standing}" + (f" ({last.report['verdict']})" if last else ""))


@app.command("add")
@expand_options
def add(
    name: NameArgument,
    library: LibraryOption,
    texts: Annotated[list[str] | None, typer.Argument(help="Queries to add.")] = None,
    source: SourceOptions = NOWHERE,
    as_json: JsonOption = False,
) -> None:
    """Add queries to a bank.

    Example: wordreel bank add mine "a dog catches a frisbee"
    """
    from wordreel.banks.sources import BankQueries
    from wordreel.library import Library

    queries = BankQueries(tuple(texts), "the command line") if texts else source.gather()
    with Library(library, create=False) as opened:
        added = opened.banks.add(name, queries.texts, queries.source)
    if as_json:
        print_json({"name": name, "added": added, "duplicates": len(queries.texts) - added})
        return
    typer.echo(f"{added} queries added to {name!r}; {len(queries.texts) - added} were duplicates.")


@app.command("remove")
def remove(
    name: NameArgument,
    library: LibraryOption,
    texts: Annotated[list[str] | None, typer.Argument(help="Queries to remove.")] = None,
    whole: Annotated[bool, typer.Option("--all", help="Delete the whole bank.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove queries from a bank, or delete it.

    Example: wordreel bank remove mine "a dog catches a frisbee"
    """
    from wordreel.library import Library

    if bool(texts) == whole:
        raise typer.BadParameter("name the queries to remove, or give --all")
    with Library(library, create=False) as opened:
        removed = len(opened.banks.show(name)) if whole else opened.banks.remove(name, texts or ())
        if whole:
            opened.banks.delete(name)
    if as_json:
        print_json({"name": name, "removed": removed, "deleted": whole})
    else:
        typer.echo(f"Bank {name!r} deleted." if whole else f"{removed} queries removed from {name!r}.")


@app.command("check")
def check(
    name: NameArgument,
    library: LibraryOption,
    captions: Annotated[
        str, typer.Option("--captions", help="Captions of videos in the library: queries with known answers.")
    ],
    data: DataOption = None,
    split: SplitOption = None,
    ids: IdsOption = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method to try. Repeat it for several.", show_default="all that search uses"),
    ] = None,
    beta: Annotated[
        str, typer.Option(help="β of the inverted softmax, or auto: chosen on half of the videos.")
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="PREFIX", help="Write PREFIX.json and PREFIX.md.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure whether a bank helps, on captions that are not in it; the verdict is "use it" or "do not".

    Example: wordreel bank check mine --captions captions.json --ids splits.json:official.val
    """
    from wordreel.banks.check import CHECKED_METHODS
    from wordreel.library import Library

    wanted = CaptionSource(captions, data, split, ids)
    report = Library(library, create=False).banks.check(
        name, wanted.read().captions, method or CHECKED_METHODS, beta_number(beta), counter("captions")
    )
    facts = {"command": command(), "inputs": wanted.inputs("captions"), **asdict(report)}
    if out is not None:
        from wordreel.banks.check import as_markdown

        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        out.with_suffix(".md").write_text(as_markdown(report), encoding="utf-8")
    if as_json:
        print_json(facts)
    else:
        _print(report)


def _print(report: BankCheck) -> None:
    typer.echo(
        f"Bank {report.bank!r} ({report.bank_size} queries), model {report.model}: {report.queries} captions "
        f"of half of {report.videos} videos; the other half chose β and method."
    )
    if report.in_bank:
        typer.echo(f"{report.in_bank} captions are in the bank and were left out.")
    typer.echo(
        f"{'method':<16} {'R@1':>5} {'R@5':>5} {'R@10':>5} {'MdR':>6} {'skew':>6}  R-sum against plain (95 %)"
    )
    for row in report.rows:
        typer.echo(_line("plain" if row.method == "none" else row.method, row))
    for row in report.unlabelled:
        typer.echo(_line(f"{row.method}, no labels", row))
    typer.echo(report.verdict[0].upper() + report.verdict[1:] + ".")
    if report.confidence is not None:
        from wordreel.banks.confidence_check import table

        typer.echo("\nConfidence against similarity, under one threshold for all queries:")
        typer.echo(table(report.confidence), nl=False)


def _line(name: str, row: BankCheckRow) -> str:
    beta = f" β={row.parameters['beta']:g}" if "beta" in row.parameters else ""
    figures = f"{row.R1:>5.1f} {row.R5:>5.1f} {row.R10:>5.1f} {row.MdR:>6g} {row.skewness:>6.2f}"
    apart = f"{row.difference:+6.1f}  [{row.low:+.1f}, {row.high:+.1f}]  p = {row.p_value:.3g}{beta}"
    return f"{name:<16} {figures}  {apart if row.method != 'none' else ''}".rstrip()


def _standing(bank: Bank, banks: BankManager) -> str:
    last = banks.last_check(bank.name)
    if last is None:
        return "unchecked"
    if last.revision != bank.revision:
        return "changed"
    return "use it" if last.passed else "do not"
