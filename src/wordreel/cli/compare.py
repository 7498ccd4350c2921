"""`wordreel compare`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.common import JsonOption, print_json
from wordreel.cli.evaluate_inputs import ARRAYS, GroupingOptions, caption_counts
from wordreel.cli.option_groups import expand_options

if TYPE_CHECKING:
    from wordreel.evaluate.report_files import SavedResult
    from wordreel.evaluate.retrieval import Protocol

METRICS = ("R1", "R5", "R10", "R50", "MdR", "MnR", "Geom")


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

    Example: wordreel compare results/plain results/trained
    """
    from wordreel.evaluate import significance
    from wordreel.evaluate.comparison import pairs_of

    compared = []
    first, second = (_saved(name, grouping, v2t) for name in (a, b))
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
    from wordreel.evaluate.tables import DIRECTIONS, TITLES, plain_text

    for side in ("a", "b"):
        typer.echo(f"{side.upper()}: {facts[side]}")
    for part in facts["compared"]:
        rule = f" ({part['protocol']})" if part["protocol"] else ""
        labels = part["postprocessing"]
        typer.echo(
            f"\n{DIRECTIONS[part['direction']]}{rule}: {part['queries']} queries in {part['groups']} groups; "
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
    """A result from its files, or one measured now from a matrix."""
    from wordreel.evaluate import report, report_files
    from wordreel.evaluate.matrices import read_captioned
    from wordreel.evaluate.retrieval import arrange

    path = Path(name)
    if path.suffix.lower() not in ARRAYS:
        return report_files.read(path)
    sims, masks, _ = read_captioned(path, grouping.key, grouping.mask)
    captions = arrange(sims.shape[1], sims.shape[0], caption_counts(grouping.each, sims.shape[1]), masks)
    measured = report.of_matrix(sims, captions, report.ReportRequest(path.name, "", (), protocol=v2t))
    ranks = tuple(run.ranks for run in measured.runs)
    return report_files.SavedResult(path.name, measured.facts, measured.queries, ranks)
