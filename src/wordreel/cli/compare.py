"""`wordreel compare`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.common import JsonOption, print_json
from wordreel.cli.evaluate_inputs import ARRAYS, counts_of
from wordreel.cli.hubness import KeyOption

if TYPE_CHECKING:
    from wordreel.evaluate.report_files import Saved

METRICS = ("R1", "R5", "R10", "R50", "MdR", "MnR", "Geom")


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A result (`evaluate --out` PREFIX) or a matrix.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, over the same queries and gallery.")],
    run_a: Annotated[int | None, typer.Option(help="Which row of A's table; plain rows unless told.")] = None,
    run_b: Annotated[int | None, typer.Option(help="Which row of B's table; plain rows unless told.")] = None,
    captions_per_video: Annotated[
        int | None, typer.Option(help="Of matrices: neighbouring rows that belong to one video.", min=1)
    ] = None,
    counts: Annotated[
        str | None, typer.Option(help="Of matrices: a file with the number of captions of each video.")
    ] = None,
    mask: Annotated[
        Path | None, typer.Option(help="Of matrices: [videos, captions], 1 for a caption, 0 for filling.")
    ] = None,
    key: KeyOption = None,
    v2t: Annotated[
        Literal["ce", "clip"], typer.Option(help="How videos that ask are counted in matrices.")
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
    from wordreel.evaluate.paired import pairs_of

    each = str(captions_per_video) if captions_per_video else counts
    found = []
    first, second = (_saved(name, each, mask, key, v2t) for name in (a, b))
    for pair in pairs_of(first, second, run_a, run_b):
        figures = [
            significance.compare(
                pair.ranks_a, pair.ranks_b, metric, groups=pair.groups, samples=samples, seed=seed
            )
            for metric in METRICS
        ]
        found.append(
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
        "compared": found,
    }
    if as_json:
        print_json(facts)
    else:
        _show(facts)


def _figure(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("a", "b", "difference", "low", "high", "p_value", "exact")}


def _show(facts: dict[str, Any]) -> None:
    from wordreel.evaluate.report_tables import DIRECTIONS, FIGURES, plain_text

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
        for metric, found in part["figures"].items():
            p = f"{found['p_value']:.4f}" if found["p_value"] >= 0.0001 else "<0.0001"
            rows.append(
                [
                    FIGURES[metric],
                    f"{found['a']:.1f}",
                    f"{found['b']:.1f}",
                    f"{found['difference']:+.2f}",
                    f"{found['low']:+.2f} to {found['high']:+.2f}",
                    p,
                ]
            )
        typer.echo(plain_text(rows), nl=False)


def _saved(name: str, captions: str | None, mask: Path | None, key: str | None, v2t: Any) -> Saved:
    """A result from its files, or one made on the spot from a matrix."""
    from wordreel.evaluate import matrices, report_build, report_files
    from wordreel.evaluate.retrieval import arrange

    path = Path(name)
    if path.suffix.lower() not in ARRAYS:
        return report_files.read(path)
    held = matrices.read_arrays(path, key)
    sims = matrices.matrix_among(held, path, key)
    inside = next((each for each in matrices.MASK_KEYS if each in held), None)
    masks = matrices.read_mask(mask) if mask else held[inside] if inside else None
    groups = arrange(sims.shape[1], sims.shape[0], counts_of(captions, sims.shape[1]), masks)
    report = report_build.of_matrix(sims, groups, report_build.Asked(path.name, "", (), protocol=v2t))
    return report_files.Saved(path.name, report.facts, report.queries, tuple(r.ranks for r in report.runs))
