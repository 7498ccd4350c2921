"""`wordreel bank …`: query banks, against the few videos that answer every query."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.bank_sources import NOWHERE, DataOption, IdsOption, SourceOptions, SplitOption
from wordreel.cli.common import (
    JsonOption,
    LibraryOption,
    beta_number,
    counter,
    names_in,
    print_json,
    printable,
)
from wordreel.cli.evaluate_inputs import CaptionSource, command
from wordreel.cli.groups import spread

if TYPE_CHECKING:
    from wordreel.banks.check import BankCheck, BankCheckRow

app = typer.Typer(
    help="Keep, check and use query banks: sample queries that show which videos turn up too often.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, typer.Argument(help="The bank's name.")]


@app.command("build")
@spread
def build(
    library: LibraryOption,
    name: NameArgument = "everyday",
    source: SourceOptions = NOWHERE,
    as_json: JsonOption = False,
) -> None:
    """Make a bank from captions, a query log, or the list that comes with wordreel.

    Example: wordreel bank build mine --captions train.json
    """
    from wordreel.api import Library

    found = source.gather(everyday=name == "everyday")
    bank = Library(library, create=False).banks.build(name, found.texts, found.source, counter("queries"))
    facts = {"name": bank.name, "queries": len(bank), "source": bank.source, "revision": bank.revision}
    if as_json:
        print_json(facts)
        return
    typer.echo(f"Bank {bank.name!r}: {len(bank)} queries from {printable(bank.source)}.")
    typer.echo(f"Check it before it is used: wordreel bank check {bank.name} --captions FILE")


@app.command("list")
def list_banks(library: LibraryOption, as_json: JsonOption = False) -> None:
    """List the banks of a library and what their checks said.

    Example: wordreel bank list
    """
    from wordreel.api import Library

    banks = Library(library, create=False).banks
    rows = [{**asdict(row), "check": _standing(banks.show(row.name), banks)} for row in banks.list()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(
            f"{row['name']:<16} {row['size']:>7} queries  {row['check']:<10} {printable(row['source'])}"
        )
    if not rows:
        typer.echo("No banks. `wordreel bank build` makes one from everyday queries.")


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
    from wordreel.api import Library

    banks = Library(library, create=False).banks
    bank, last = banks.show(name), banks.last_check(name)
    if as_json:
        print_json({**asdict(bank), "revision": bank.revision, "check": last and last.report})
        return
    made = datetime.fromtimestamp(bank.made_at).strftime("%Y-%m-%d")
    typer.echo(f"{bank.name}: {len(bank)} queries, made {made} from {printable(bank.source)}")
    for text in bank.texts[:limit]:
        typer.echo(f"  {printable(text)}")
    if len(bank) > limit:
        typer.echo(f"  … and {len(bank) - limit} more")
    typer.echo(f"Check: {_standing(bank, banks)}" + (f" ({last.report['verdict']})" if last else ""))


@app.command("add")
@spread
def add(
    name: NameArgument,
    library: LibraryOption,
    texts: Annotated[list[str] | None, typer.Argument(help="Queries to add.")] = None,
    source: SourceOptions = NOWHERE,
) -> None:
    """Add queries to a bank.

    Example: wordreel bank add mine "a dog catches a frisbee"
    """
    from wordreel.api import Library
    from wordreel.banks.sources import BankQueries

    found = BankQueries(tuple(texts), "the command line") if texts else source.gather()
    added = Library(library, create=False).banks.add(name, found.texts, found.source)
    typer.echo(f"{added} new queries in {name!r}; {len(found.texts) - added} were there or said twice.")


@app.command("drop")
def drop(
    name: NameArgument,
    library: LibraryOption,
    texts: Annotated[list[str] | None, typer.Argument(help="Queries to take out.")] = None,
    whole: Annotated[bool, typer.Option("--all", help="Forget the whole bank.")] = False,
) -> None:
    """Take queries out of a bank, or forget it.

    Example: wordreel bank drop mine "a dog catches a frisbee"
    """
    from wordreel.api import Library

    if bool(texts) == whole:
        raise typer.BadParameter("name the queries to take out, or give --all")
    banks = Library(library, create=False).banks
    if whole:
        banks.delete(name)
        typer.echo(f"Bank {name!r} is forgotten.")
        return
    typer.echo(f"{banks.remove(name, texts or ())} queries taken out of {name!r}.")


@app.command("check")
def check(
    name: NameArgument,
    library: LibraryOption,
    captions: Annotated[
        str, typer.Option("--captions", help="Captions of videos in the library, which know the answers.")
    ],
    data: DataOption = None,
    split: SplitOption = None,
    ids: IdsOption = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Methods to try, separated by commas.", show_default="all that search uses"),
    ] = None,
    beta: Annotated[
        str, typer.Option(help="β of the inverted softmax, or auto: chosen on half of the videos.")
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="PREFIX", help="Write PREFIX.json and PREFIX.md.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure whether a bank helps, on captions that are not in it, and say "use it" or "do not".

    Example: wordreel bank check mine --captions captions.json --ids splits.json:official.val
    """
    from wordreel.api import Library
    from wordreel.banks.check import CHECKED_METHODS

    named = names_in(methods)
    chosen = CHECKED_METHODS if named is None else named
    wanted = CaptionSource(captions, data, split, ids)
    report = Library(library, create=False).banks.check(
        name, wanted.read().captions, chosen, beta_number(beta), counter("captions")
    )
    facts = {"command": command(), "inputs": wanted.inputs("captions"), **asdict(report)}
    if out is not None:
        from wordreel.banks.check_table import markdown

        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        out.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
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
        from wordreel.evaluate.confidence import table

        typer.echo("\nConfidence against similarity, under one threshold for all queries:")
        typer.echo(table(report.confidence), nl=False)


def _line(name: str, row: BankCheckRow) -> str:
    beta = f" β={row.parameters['beta']:g}" if "beta" in row.parameters else ""
    figures = f"{row.R1:>5.1f} {row.R5:>5.1f} {row.R10:>5.1f} {row.MdR:>6g} {row.skewness:>6.2f}"
    apart = f"{row.difference:+6.1f}  [{row.low:+.1f}, {row.high:+.1f}]  p = {row.p_value:.3g}{beta}"
    return f"{name:<16} {figures}  {apart if row.method != 'none' else ''}".rstrip()


def _standing(bank: Any, banks: Any) -> str:
    last = banks.last_check(bank.name)
    if last is None:
        return "unchecked"
    if last.revision != bank.revision:
        return "changed"
    return "use it" if last.passed else "do not"
