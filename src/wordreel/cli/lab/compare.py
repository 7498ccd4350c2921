"""`wordreel compare`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.console.common import JsonOption, print_json
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.lab.evaluate_options import ARRAYS, METHOD_HELP, BankOptions, GroupingOptions, MethodOptions
from wordreel.cli.lab.evaluate_scored import read_scored

if TYPE_CHECKING:
    from wordreel.lab.reports.report_files import SavedResult
    from wordreel.retrieval.caption_ranks import Protocol

NORM_HELP = f"How matrix {{}} is normalised before it is ranked: {METHOD_HELP}."
METRICS = ("R1", "R5", "R10", "R50", "MdR", "MnR", "Geom")


@dataclass(frozen=True)
class NormA:
    """The normalisation of matrix A."""

    method_a: Annotated[
        str | None, typer.Option(help=NORM_HELP.format("A"), show_default="dis with a bank")
    ] = None
    bank_a: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The bank of matrix A: [bank queries, videos].")
    ] = None
    beta_a: Annotated[
        str | None,
        typer.Option(metavar="NUMBER|auto", help="The method's β for A.", show_default="the method's"),
    ] = None


@dataclass(frozen=True)
class NormB:
    """The normalisation of matrix B."""

    method_b: Annotated[
        str | None, typer.Option(help=NORM_HELP.format("B"), show_default="dis with a bank")
    ] = None
    bank_b: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The bank of matrix B: [bank queries, videos].")
    ] = None
    beta_b: Annotated[
        str | None,
        typer.Option(metavar="NUMBER|auto", help="The method's β for B.", show_default="the method's"),
    ] = None


@expand_options
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A result (`evaluate --out` PREFIX) or a matrix.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, over the same queries and gallery.")],
    grouping: GroupingOptions,
    norm_a: NormA,
    norm_b: NormB,
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

    Two matrices, or one matrix twice, can be normalised first; a label states how. test-is and dsl are
    transductive: they use all test queries.

    Example: wordreel compare results/plain results/trained
    Example: wordreel compare sims.npy sims.npy --bank-a train.npy --method-b dsl
    """
    from wordreel.lab.reports.comparison import pairs_of
    from wordreel.retrieval import significance

    if grouping.folds:
        raise typer.BadParameter("--folds is for `evaluate`; compare whole matrices.")
    compared = []
    first = _saved(a, grouping, norm_a.bank_a, _methods(norm_a.method_a, norm_a.beta_a), v2t)
    second = _saved(b, grouping, norm_b.bank_b, _methods(norm_b.method_b, norm_b.beta_b), v2t)
    for pair in pairs_of(first, second, run_a, run_b):
        figures = [
            significance.compare(
                pair.ranks_a, pair.ranks_b, metric, groups=pair.groups, samples=samples, seed=seed
            )
            for metric in METRICS
        ]
        compared.append(
            {
                "direction": pair.direction,
                "protocol": pair.protocol,
                "modality": pair.modality,
                "postprocessing": {"a": pair.label_a, "b": pair.label_b},
                "queries": figures[0].queries,
                "groups": figures[0].groups,
                "figures": {figure.metric: _figure(asdict(figure)) for figure in figures},
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


def _figure(comparison: dict[str, Any]) -> dict[str, Any]:
    return {name: comparison[name] for name in ("a", "b", "difference", "low", "high", "p_value", "exact")}


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


def _methods(method: str | None, beta: str | None) -> MethodOptions:
    return MethodOptions(None if method is None else [method], None if beta is None else [beta])


def _saved(
    name: str, grouping: GroupingOptions, bank: Path | None, options: MethodOptions, v2t: Protocol
) -> SavedResult:
    """A result from its files, or one measured now from a matrix: its normalised runs where it has any."""
    from wordreel.lab.reports import report, report_files

    path = Path(name)
    methods = options.chosen(bank is not None)
    if path.suffix.lower() not in ARRAYS:
        if methods:
            raise typer.BadParameter(
                f"{name} is a result: choose its normalised row with --run-a or --run-b, or give a matrix."
            )
        return report_files.read(path)
    scored, _ = read_scored(path, grouping, BankOptions([bank] if bank else None))
    measured = report.of_matrix(
        scored.similarities,
        scored.captions,
        report.ReportRequest(path.name, "", (), protocol=v2t),
        scored.normalisations(options),
    )
    chosen = [n for n, run in enumerate(measured.runs) if not methods or run.postprocessing != "none"]
    facts = {**measured.facts, "runs": [measured.facts["runs"][n] for n in chosen]}
    ranks = tuple(measured.runs[n].ranks for n in chosen)
    return report_files.SavedResult(path.name, facts, measured.queries, ranks)
