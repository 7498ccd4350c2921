"""`wordreel bank …`: build, check and use query banks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    OpenLibrary,
    VerbGroup,
    beta_number,
    counter,
    print_result,
    printable,
)
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.console.terminal import padded
from wordreel.cli.lab.evaluate_options import DataOption, IdsOption, SplitOption
from wordreel.cli.lab.evaluate_sources import CaptionSource, command

if TYPE_CHECKING:
    from wordreel.banks.check import BankCheck, BankCheckRow
    from wordreel.banks.manager import BankManager
    from wordreel.banks.sources import BankQueries
    from wordreel.catalogue.banks import Bank

app = VerbGroup(
    "Build, check and use query banks: sample queries that show which videos turn up too often.",
    no_args_is_help=True,
)

NameArgument = Annotated[str, typer.Argument(help="The bank's name.")]


@dataclass(frozen=True)
class SourceOptions:
    """Captions, a query log or the built-in list, at most one of them."""

    captions: Annotated[
        str | None,
        typer.Option(
            "--captions", help="Captions: .csv, .jsonl, .json, FILE.json:key, or a dataset with --data."
        ),
    ] = None
    data: DataOption = None
    split: SplitOption = None
    ids: IdsOption = None
    log: Annotated[
        str | None, typer.Option("--log", help="A query log: a query or a JSON object a line; - is stdin.")
    ] = None
    builtin: Annotated[
        bool, typer.Option("--builtin", help="The everyday queries that come with wordreel.")
    ] = False
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most this many, evenly spaced over the source.")
    ] = None

    def gather(self, everyday: bool = False) -> BankQueries:
        """Return queries from the one named source; the everyday ones if `everyday` and none is named."""
        from wordreel.banks import sources

        if sum((bool(self.captions), self.log is not None, self.builtin)) > 1:
            raise typer.BadParameter("name one source: --captions, --log or --builtin")
        if self.captions:
            split = CaptionSource(self.captions, self.data, self.split, self.ids).read()
            queries = sources.from_captions(split.captions, Path(self.captions).name, split.name)
        elif self.log is not None:
            queries = sources.from_log(self.log)
        elif self.builtin or everyday:
            queries = sources.builtin()
        else:
            raise typer.BadParameter("name a source: --captions FILE, --log FILE or --builtin")
        return sources.subsample(queries, self.limit)


NOWHERE = SourceOptions()


@app.command("build")
@expand_options
def build(
    library: OpenLibrary,
    name: NameArgument = "everyday",
    source: SourceOptions = NOWHERE,
    as_json: JsonOption = False,
) -> None:
    """Build a bank from captions, a query log, or the everyday queries that come with wordreel.

    Example: wordreel bank build mine --captions train.json
    """
    queries = source.gather(everyday=name == "everyday")
    bank = library.banks.build(name, queries.texts, queries.source, counter("queries"))
    facts = {"name": bank.name, "queries": len(bank), "source": bank.source, "revision": bank.revision}
    done = f"Bank {bank.name!r}: {len(bank)} queries from {printable(bank.source)}."
    next_step = f"Check it before searches use it: wordreel bank check {bank.name} --captions FILE"
    print_result(as_json, facts, [done, next_step])


@app.command("list")
def list_banks(library: OpenLibrary, as_json: JsonOption = False) -> None:
    """List the banks of a library and the verdicts of their checks.

    Example: wordreel bank list
    """
    banks = library.banks
    rows = [{**asdict(row), "check": _standing(banks.show(row.name), banks)} for row in banks.list()]
    lines = [
        f"{padded(printable(row['name']), 16)} {row['size']:>7} queries  {row['check']:<10} "
        + printable(row["source"])
        for row in rows
    ]
    none = "No banks. Build one from everyday queries: `wordreel bank build`."
    print_result(as_json, rows, lines or [none])


@app.command("show")
def show(
    name: NameArgument,
    library: OpenLibrary,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many queries to show.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show a bank: its queries and its last check.

    Example: wordreel bank show mine --limit 50
    """
    bank, last = library.banks.show(name), library.banks.last_check(name)
    standing = _standing(bank, library.banks)
    facts = {**asdict(bank), "revision": bank.revision, "check": last and last.report}
    built = datetime.fromtimestamp(bank.made_at).strftime("%Y-%m-%d")
    lines = [f"{bank.name}: {len(bank)} queries, built {built} from {printable(bank.source)}"]
    lines += [f"  {printable(text)}" for text in bank.texts[:limit]]
    lines += [f"  … and {len(bank) - limit} more"] if len(bank) > limit else []
    lines += [f"Check: {standing}" + (f" ({last.report['verdict']})" if last else "")]
    print_result(as_json, facts, lines)


@app.command("add")
@expand_options
def add(
    name: NameArgument,
    library: OpenLibrary,
    texts: Annotated[list[str] | None, typer.Argument(help="Queries to add.")] = None,
    source: SourceOptions = NOWHERE,
    as_json: JsonOption = False,
) -> None:
    """Add queries to a bank.

    Example: wordreel bank add mine "a dog catches a frisbee"
    """
    from wordreel.banks.sources import BankQueries

    queries = BankQueries(tuple(texts), "the command line") if texts else source.gather()
    added = library.banks.add(name, queries.texts, queries.source)
    facts = {"name": name, "added": added, "duplicates": len(queries.texts) - added}
    line = f"{added} queries added to {name!r}; {facts['duplicates']} were duplicates."
    print_result(as_json, facts, [line])


@app.command("remove")
def remove(
    name: NameArgument,
    library: OpenLibrary,
    texts: Annotated[list[str] | None, typer.Argument(help="Queries to remove.")] = None,
    whole: Annotated[bool, typer.Option("--all", help="Delete the whole bank.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove queries from a bank, or delete it.

    Example: wordreel bank remove mine "a dog catches a frisbee"
    """
    if bool(texts) == whole:
        raise typer.BadParameter("name the queries to remove, or give --all")
    removed = len(library.banks.show(name)) if whole else library.banks.remove(name, texts or ())
    if whole:
        library.banks.delete(name)
    line = f"Bank {name!r} deleted." if whole else f"{removed} queries removed from {name!r}."
    print_result(as_json, {"name": name, "removed": removed, "deleted": whole}, [line])


@app.command("check")
def check(
    name: NameArgument,
    library: OpenLibrary,
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

    wanted = CaptionSource(captions, data, split, ids)
    report = library.banks.check(
        name, wanted.read().captions, method or CHECKED_METHODS, beta_number(beta), counter("captions")
    )
    facts = {"command": command(), "inputs": wanted.inputs("captions"), **asdict(report)}
    if out is not None:
        from wordreel.banks.check import as_markdown

        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        out.with_suffix(".md").write_text(as_markdown(report), encoding="utf-8")
    print_result(as_json, facts, _check_lines(report))


def _check_lines(report: BankCheck) -> Iterator[str]:
    yield (
        f"Bank {report.bank!r} ({report.bank_size} queries), model {report.model}: {report.queries} captions "
        f"of half of {report.videos} videos; the other half chose β and method."
    )
    if report.in_bank:
        yield f"{report.in_bank} captions are in the bank and were left out."
    figures = f"{'R@1':>5} {'R@5':>5} {'R@10':>5} {'MdR':>6} {'skew':>6}"
    yield f"{'method':<16} {figures}  R-sum against plain (95 %)"
    for row in report.rows:
        yield _line("plain" if row.method == "none" else row.method, row)
    for row in report.unlabelled:
        yield _line(f"{row.method}, no labels", row)
    yield report.verdict[0].upper() + report.verdict[1:] + "."
    if report.confidence is not None:
        from wordreel.banks.confidence_check import table

        yield "\nConfidence against similarity, under one threshold for all queries:"
        yield table(report.confidence).removesuffix("\n")


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
