"""What becomes of results: `wordreel compare` and `wordreel results`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.lab.evaluate_options import ARRAYS, BankOptions, GroupingOptions
from wordreel.cli.lab.evaluate_sources import read_scored

if TYPE_CHECKING:
    from wordreel.lab.reports.report_files import SavedResult
    from wordreel.retrieval.caption_ranks import Protocol

SHOWN = ("a", "b", "difference", "low", "high", "p_value", "exact")  # of a comparison


@expand_options
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A result (`evaluate --out` PREFIX) or a matrix.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, over the same queries and gallery.")],
    grouping: GroupingOptions,
    run_a: Annotated[
        int | None, typer.Option(help="Which row of A's table.", show_default="the plain rows")
    ] = None,
    run_b: Annotated[
        int | None, typer.Option(help="Which row of B's table.", show_default="the plain rows")
    ] = None,
    v2t: Annotated[
        Literal["ce", "clip"], typer.Option(help="How video-to-text ranks are counted in matrices.")
    ] = "ce",
    samples: Annotated[
        int, typer.Option(help="Draws of the bootstrap and the permutation test.", min=100)
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare two results over the same queries: is B better than A, or was it luck?

    For every figure: the difference B − A, its 95 % confidence interval (paired bootstrap) and the p-value of
    a paired permutation test. Captions of one video are drawn together. Results over different queries or
    galleries are refused.

    Normalised rankings are rows of a result's table: name them with --run-a and --run-b.

    Example: wordreel compare results/plain results/trained
    Example: wordreel compare results/mine results/mine --run-b 3
    """
    from wordreel.lab.reports.comparison import pairs_of
    from wordreel.retrieval import significance
    from wordreel.retrieval.metrics import DISPLAYED

    compared = []
    for pair in pairs_of(_saved(a, grouping, v2t), _saved(b, grouping, v2t), run_a, run_b):
        figures = {
            metric: asdict(
                significance.compare(
                    pair.ranks_a, pair.ranks_b, metric, groups=pair.groups, samples=samples, seed=seed
                )
            )
            for metric in DISPLAYED
        }
        compared.append(
            {
                "direction": pair.direction,
                "protocol": pair.protocol,
                "modality": pair.modality,
                "postprocessing": {"a": pair.label_a, "b": pair.label_b},
                "queries": figures["R1"]["queries"],
                "groups": figures["R1"]["groups"],
                "figures": {
                    metric: {name: figure[name] for name in SHOWN} for metric, figure in figures.items()
                },
            }
        )
    facts = {
        "a": Path(a).name,
        "b": Path(b).name,
        "samples": samples,
        "level": 0.95,
        "seed": seed,
        "compared": compared,
    }
    if as_json:
        print_json(facts)
    else:
        _show(facts)


def _show(facts: dict[str, Any]) -> None:
    from wordreel.lab.reports.tables import TITLES, direction_title, plain_text

    for side in ("a", "b"):
        typer.echo(f"{side.upper()}: {facts[side]}")
    for part in facts["compared"]:
        labels = part["postprocessing"]
        typer.echo(
            f"\n{direction_title(part)}: {part['queries']} queries in {part['groups']} groups; "
            f"post-processing A: {labels['a']}, B: {labels['b']}"
        )
        rows = [["", "A", "B", "B − A", "95% interval", "p"]]
        for metric, comparison in part["figures"].items():
            p = f"{comparison['p_value']:.4f}" if comparison["p_value"] >= 0.0001 else "<0.0001"
            rows.append(
                [
                    TITLES[metric],
                    f"{comparison['a']:.1f}",
                    f"{comparison['b']:.1f}",
                    f"{comparison['difference']:+.2f}",
                    f"{comparison['low']:+.2f} to {comparison['high']:+.2f}",
                    p,
                ]
            )
        typer.echo(plain_text(rows), nl=False)


def _saved(name: str, grouping: GroupingOptions, v2t: Protocol) -> SavedResult:
    """Return a result from its files, or one measured now from a matrix."""
    from wordreel.lab.reports import report, report_files

    path = Path(name)
    if path.suffix.lower() not in ARRAYS:
        return report_files.read(path)
    scored, _ = read_scored(path, grouping, BankOptions())
    request = report.ReportRequest(path.name, "", (), protocol=v2t)
    measured = report.of_matrix(scored.similarities, scored.captions, request)
    ranks = tuple(run.ranks for run in measured.runs)
    return report_files.SavedResult(path.name, measured.facts, measured.queries, ranks)


def results(
    folder: Annotated[Path, typer.Argument(help="Where `evaluate --out` wrote results.")] = Path("results"),
    write: Annotated[
        bool, typer.Option("--write", help="Put the tables between the marks in FOLDER/README.md.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Fail if the tables in FOLDER/README.md are not these.")
    ] = False,
) -> None:
    """Make the tables of a folder of results from its files, so that no number is ever typed.

    Example: wordreel results results --write
    """
    from wordreel.lab.reports.report_files import replace_tables, tables

    written = tables(folder)
    if not write and not check:
        typer.echo(written, nl=False)
        return
    readme = folder / "README.md"
    old = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    new = replace_tables(old, written)
    if check and new != old:
        typer.echo(
            f"{printable(readme)} is not what the results say; run: wordreel results --write", err=True
        )
        raise typer.Exit(1)
    if write:
        readme.write_text(new, encoding="utf-8")
