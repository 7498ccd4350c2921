"""`wordreel hubness`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, print_json

KeyOption = Annotated[
    str | None, typer.Option(help="Which array to take from a file that holds several.", metavar="NAME")
]


def hubness(
    sims: Annotated[
        Path, typer.Argument(help="Similarities [queries, items]: .npy, .npz, .safetensors, .h5 or .pkl.")
    ],
    k: Annotated[int, typer.Option("--k", min=1, help="How many items each query retrieves.")] = 10,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how unevenly the queries of a similarity matrix retrieve its items.

    Skewness near 0 means that no item turns up much more often than others; hubs make it large. Of a
    [captions, videos] matrix this measures the videos.

    Example: wordreel hubness test-captions-test-videos.npy --k 10
    """
    from wordreel.evaluate.matrices import read_matrix
    from wordreel.hubness import summary

    matrix = read_matrix(sims, key)
    found = asdict(summary(matrix, k))
    if as_json:
        print_json({"queries": matrix.shape[0], "items": matrix.shape[1], **found})
        return
    typer.echo(f"{matrix.shape[0]} queries, {matrix.shape[1]} items")
    for name, value in found.items():
        typer.echo(f"{name.replace('_', ' '):<20}{shown(value):>10}")


def shown(value: float) -> str:
    """Whole numbers as they are, others to three places.

    >>> shown(10), shown(0.25)
    ('10', '0.250')
    """
    return str(value) if isinstance(value, int) else f"{value:.3f}"
