"""The charts of reports and studies: lines, horizontal bars, histograms, k-occurrences.

Each `draw_…` puts its data on matplotlib axes; the function without the prefix returns the SVG.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wordreel.hubness.measures import occurrence_edges, skewness
from wordreel.lab.plots.svg import COLOURS, chart, clean
from wordreel.types import Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Sequence[float] | NDArray[Any]
LONGEST = 34  # letters of a bar's name


@dataclass(frozen=True)
class Series:
    """Points of one line, which NaN in `y` interrupts; `low` and `high` draw a band around it."""

    name: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    dashed: bool = False  # for comparison

    def __post_init__(self) -> None:
        lengths = {len(side) for side in (self.x, self.y, self.low, self.high) if side is not None}
        if len(lengths) != 1:
            raise ValueError(f"the coordinates of {self.name!r} have different lengths: {sorted(lengths)}")


def line_chart(
    series: Sequence[Series],
    title: str,
    x_label: str = "",
    y_label: str = "",
    *,
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = True,
    description: str = "",
    width: float = 560,
    height: float = 330,
) -> str:
    """Several lines over common axes; `zero` starts the y axis at 0. A log axis leaves out what is ≤ 0."""

    def draw(axes: Axes) -> None:
        draw_lines(axes, series, log_x=log_x, log_y=log_y, zero=zero)
        axes.set_xlabel(clean(x_label))
        axes.set_ylabel(clean(y_label))

    ends = "; ".join(f"{line.name} ends at {line.y[-1]:.4g}" for line in series if len(line.y))
    return chart(draw, title, description or ends, width, height)


def draw_lines(
    axes: Axes, series: Sequence[Series], *, log_x: bool = False, log_y: bool = False, zero: bool = True
) -> None:
    """Lines, with a dot where a point has no neighbours, and bands around those that have one."""
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    for number, line in enumerate(series):
        x, y = (np.asarray(side, np.float64) for side in (line.x, line.y))
        visible = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_x)) & ((y > 0) | (not log_y))
        colour = COLOURS[number % len(COLOURS)]
        style = "--" if line.dashed else "-"
        axes.plot(x, np.where(visible, y, np.nan), style, color=colour, lw=2, label=clean(line.name))
        beside = np.r_[False, visible[:-1]] | np.r_[visible[1:], False] if len(x) else visible
        alone = visible & ~beside
        if alone.any():
            axes.plot(x[alone], y[alone], "o", color=colour, ms=5)
        if line.low is not None and line.high is not None:
            axes.fill_between(x, np.asarray(line.low), np.asarray(line.high), color=colour, alpha=0.18, lw=0)
    if zero and not log_y and not axes.dataLim.y0 < 0:
        axes.set_ylim(bottom=0.0)
    axes.grid(axis="y")
    _legend(axes, len(series))


def bar_chart(
    names: Sequence[str],
    values: Mapping[str, Sequence[float]],
    title: str,
    x_label: str = "",
    *,
    digits: int = 1,
    description: str = "",
    width: float = 560,
) -> str:
    """Bars of `values[series][row]` with their number at the end; NaN has no bar but a dash."""
    for series, held in values.items():
        if len(held) != len(names):
            raise ValueError(f"{series!r} has {len(held)} values for {len(names)} names")

    def draw(axes: Axes) -> None:
        draw_bars(axes, names, values, digits=digits)
        axes.set_xlabel(clean(x_label))

    listed = "; ".join(
        f"{name}: " + ", ".join(f"{series} {held[at]:.{digits}f}" for series, held in values.items())
        for at, name in enumerate(names)
    )
    height = 90 + len(names) * (9 + 16 * max(1, len(values)))
    return chart(draw, title, description or listed, width, height)


def draw_bars(
    axes: Axes, names: Sequence[str], values: Mapping[str, Sequence[float]], *, digits: int = 1
) -> None:
    """Horizontal bars, one row per name, the first on top."""
    rows = np.arange(len(names), dtype=np.float64)
    thick = 0.8 / max(1, len(values))
    for number, (series, held) in enumerate(values.items()):
        numbers = np.asarray(held, np.float64)
        colour = COLOURS[number % len(COLOURS)]
        at = rows - 0.4 + thick * (number + 0.5)
        bars = axes.barh(at, np.nan_to_num(numbers), thick * 0.9, color=colour, label=clean(series))
        written = [f"{value:.{digits}f}" if math.isfinite(value) else "–" for value in numbers]
        axes.bar_label(bars, written, padding=4)
    axes.set_yticks(rows, [clean(_short(name)) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    _legend(axes, len(values) if len(values) > 1 else 0)


def histogram(
    samples: Mapping[str, ArrayLike],
    edges: Sequence[float] | Float64,
    title: str,
    x_label: str = "",
    y_label: str = "",
    *,
    log_x: bool = False,
    log_y: bool = False,
    share: bool = False,
    legend: bool | None = None,
    description: str = "",
    width: float = 560,
    height: float = 330,
) -> str:
    """How many values of each sample fall into each bin `[edge, next edge)`, the last one closed.

    `share` gives per cent of the sample. Several samples have a `legend`, one alone only on request.
    """
    bounds = np.asarray(edges, np.float64)
    if len(bounds) < 2 or (np.diff(bounds) <= 0).any():
        raise ValueError("the edges of bins go up, and there are at least two")
    named = len(samples) > 1 if legend is None else legend

    def draw(axes: Axes) -> None:
        draw_histogram(axes, samples, bounds, log_x=log_x, log_y=log_y, share=share, legend=named)
        axes.set_xlabel(clean(x_label))
        axes.set_ylabel(clean(y_label))

    counts = {name: np.histogram(np.asarray(values), bounds)[0] for name, values in samples.items()}
    listed = "; ".join(
        f"{name}: {int(c.sum())} values, most in one bin {int(c.max())}" for name, c in counts.items()
    )
    return chart(draw, title, description or listed, width, height)


def draw_histogram(
    axes: Axes,
    samples: Mapping[str, ArrayLike],
    edges: Float64,
    *,
    log_x: bool = False,
    log_y: bool = False,
    share: bool = False,
    legend: bool = False,
) -> None:
    """Filled steps; a logarithmic y axis starts below the smallest count, so a single value shows."""
    heights_of = {}
    for name, values in samples.items():
        sample = np.asarray(values)
        heights = np.histogram(sample, edges)[0].astype(np.float64)
        heights_of[name] = 100 * heights / max(1, sample.size) if share else heights
    floor = (
        0.7 * min([1.0, *(float(h[h > 0].min(initial=1.0)) for h in heights_of.values())]) if log_y else 0.0
    )
    for number, (name, heights) in enumerate(heights_of.items()):
        colour = COLOURS[number % len(COLOURS)]
        opacity = 0.35 if len(samples) == 1 else 0.15
        steps = np.maximum(heights, floor)
        axes.stairs(steps, edges, baseline=floor, fill=True, color=colour, alpha=opacity, lw=0)
        axes.stairs(steps, edges, baseline=floor, color=colour, lw=1.5, label=clean(name))
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
        axes.set_ylim(bottom=floor)
    axes.set_xlim(float(edges[0]), float(edges[-1]))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    _legend(axes, len(samples) if legend else 0)


def occurrence_chart(
    counts: Mapping[str, ArrayLike],
    k: int = 10,
    title: str | None = None,
    *,
    items: str = "items",
    width: float = 560,
    height: float = 330,
) -> str:
    """The k-occurrence distribution, as before and after a normalisation (QB-Norm, arXiv 2112.12777, fig. 2).

    `counts` are Nₖ `[items]` by name, such as {"before": …, "after": …}; the legend gives their skewness.
    Hubs make a long tail to the right, items that nobody retrieves a high bar at 0. The y axis is
    logarithmic, because a hub is a single item among hundreds.
    """
    arrays = {name: np.asarray(values) for name, values in counts.items()}
    named = {f"{name}: {_about(values)}": values for name, values in arrays.items()}
    return histogram(
        named,
        occurrence_edges(max(int(values.max(initial=0)) for values in arrays.values())),
        f"How often {items} are retrieved" if title is None else title,
        f"times among the best {k}",
        f"{items} (log)",
        log_y=True,
        legend=True,
        description="; ".join(named),
        width=width,
        height=height,
    )


def _about(counts: NDArray[Any]) -> str:
    return (
        f"skewness {skewness(counts):.2f}, largest {int(counts.max(initial=0))}, "
        f"never {100 * float(np.mean(counts == 0)):.1f}%"
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _legend(axes: Axes, entries: int) -> None:
    if entries:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=min(entries, 2), frameon=False, fontsize=10
        )
