"""The k-occurrence distribution before and after a normalisation (QB-Norm, arXiv 2112.12777, figure 2).

How many items are retrieved how often: hubs make a long tail to the right, items that nobody finds a high bar
at 0. The number of items is drawn by logarithm, since a hub is a single item among hundreds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from wordreel.hubness.measures import skewness
from wordreel.plots.histogram import histogram
from wordreel.types import Float64

BINS = 40


def occurrence_chart(
    counts: Mapping[str, ArrayLike],
    k: int = 10,
    title: str = "",
    *,
    items: str = "items",
    width: float = 560,
    height: float = 300,
    standalone: bool = True,
) -> str:
    """Distributions of Nₖ `[items]`, such as {"before": …, "after": …}; the legend gives their skewness.

    >>> "skewness 1.15" in occurrence_chart({"plain": np.array([0, 0, 0, 4])}, k=1)
    True
    """
    held = {name: np.asarray(values) for name, values in counts.items()}
    named = {f"{name}: {_about(values)}": values for name, values in held.items()}
    return histogram(
        named,
        edges_for(max(int(values.max(initial=0)) for values in held.values())),
        title or f"How often {items} are retrieved",
        f"times among the best {k}",
        f"{items} (log)",
        log_y=True,
        legend=True,
        description="; ".join(f"{name}: {_about(values)}" for name, values in held.items()),
        width=width,
        height=height,
        standalone=standalone,
    )


def edges_for(largest: int) -> Float64:
    """Bins of equal whole width; the first holds only 0, what is never retrieved.

    >>> edges_for(3).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    step = max(1, -(-largest // BINS))
    return np.concatenate([[0.0], np.arange(1, max(1, largest) + step + 1, step, dtype=np.float64)])


def _about(counts: Float64) -> str:
    return (
        f"skewness {skewness(counts):.2f}, largest {int(counts.max(initial=0))}, "
        f"never {100 * float(np.mean(counts == 0)):.1f}%"
    )
