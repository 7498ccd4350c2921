"""`wordreel hubness`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

KeyOption = Annotated[
    str | None, typer.Option(help="Which array to take from a file that holds several.", metavar="NAME")
]


PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", metavar="OUT.svg", help="Draw how often each item is retrieved."),
]


def hubness(
    sims: Annotated[
        Path, typer.Argument(help="Similarities [queries, items]: .npy, .npz, .safetensors, .h5 or .pkl.")
    ],
    k: Annotated[int, typer.Option("--k", min=1, help="How many items each query retrieves.")] = 10,
    key: KeyOption = None,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how unevenly the queries of a similarity matrix retrieve its items.

    Skewness near 0 means that no item turns up much more often than others; hubs make it large. Of a
    [captions, videos] matrix this measures the videos.

    Example: wordreel hubness test-captions-test-videos.npy --k 10
    """
    from wordreel.hubness import k_occurrence, measure_hubness
    from wordreel.lab.evaluate.matrices import read_matrix

    check_plot(plot)
    matrix = read_matrix(sims, key)
    if k >= matrix.shape[1]:
        raise typer.BadParameter(
            f"--k {k} retrieves all {matrix.shape[1]} items for every query, which says nothing; take fewer"
        )
    measures = asdict(measure_hubness(matrix, k))
    if plot:
        draw(plot, {"plain": k_occurrence(matrix, k)}, k)
    if as_json:
        print_json({"queries": matrix.shape[0], "items": matrix.shape[1], **measures})
        return
    typer.echo(f"{matrix.shape[0]} queries, {matrix.shape[1]} items")
    for name, value in measures.items():
        typer.echo(f"{name.replace('_', ' '):<20}{formatted(value):>10}")


def check_plot(path: Path | None) -> None:
    """Refuse a plot that cannot be written, before any work is done."""
    if path is not None and path.suffix.lower() != ".svg":
        raise typer.BadParameter("--plot draws SVG; give it a name that ends in .svg.")
    if path is not None:
        from wordreel.errors import NextStep
        from wordreel.lab.plots import PlotsMissing, available

        if not available():
            raise PlotsMissing(
                "--plot needs matplotlib", NextStep("install it: pip install 'wordreel[plots]'")
            )


def draw(path: Path, counts: Mapping[str, NDArray[Any]], k: int, items: str = "items") -> None:
    """Write the distribution of k-occurrences as SVG."""
    from wordreel.errors import HubnessError
    from wordreel.lab.plots import occurrence_chart

    try:
        path.write_text(
            occurrence_chart(counts, k, f"How often {items} are retrieved", items) + "\n", encoding="utf-8"
        )
    except OSError as error:
        raise HubnessError(f"{path} cannot be written: {error.strerror or error}") from None
    typer.echo(f"chart written to {printable(path)}", err=True)


def formatted(value: float) -> str:
    """Format whole numbers as they are, others to three digits.

    >>> formatted(10), formatted(0.25)
    ('10', '0.250')
    """
    return str(value) if isinstance(value, int) else f"{value:.3f}"
