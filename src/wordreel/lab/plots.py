"""Charts as SVG text, drawn by matplotlib (the `plots` extra): the same bytes for the same data.

Each `draw_…` puts its data on matplotlib axes; the function without the prefix returns the SVG.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wordreel.errors import NextStep, WordreelError
from wordreel.hubness.measures import occurrence_edges, skewness
from wordreel.types import Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Sequence[float] | NDArray[Any]
MAX_NAME = 34  # letters of a bar's name
COLOURS = ("#2563c9", "#cf5a1b", "#178a5c", "#7d4cc2", "#a87900", "#b8336a")
DPI = 72  # one pixel of the SVG is one point
WIDTH, HEIGHT = 560.0, 330.0
STYLE = Path(__file__).with_suffix(".mplstyle")


class PlotsMissing(WordreelError):
    """matplotlib is not installed."""


def available() -> bool:
    """Return whether charts can be drawn here."""
    return find_spec("matplotlib") is not None


def clean(text: str) -> str:
    r"""Replace what XML cannot hold by `�`.

    >>> clean("a\x00b")
    'a�b'
    """
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)


def chart(
    draw: Callable[[Axes], None], title: str, x_label: str, y_label: str = "", height: float = HEIGHT
) -> str:
    """Return the SVG of what `draw` puts on the axes."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotsMissing(
            "charts need matplotlib", NextStep("install it: pip install 'wordreel[plots]'")
        ) from None
    file = io.StringIO()
    with rc_context(fname=STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # glyphs that matplotlib's font lacks: the reader's font draws them
        figure = Figure(figsize=(WIDTH / DPI, height / DPI))
        axes = figure.add_subplot()
        draw(axes)
        axes.set_xlabel(clean(x_label))
        axes.set_ylabel(clean(y_label))
        if title:
            figure.suptitle(clean(title), x=0.015, ha="left", fontsize=14, fontweight="bold")
        about = {"Title": clean(title), "Date": None, "Creator": None}
        FigureCanvasSVG(figure).print_svg(file, metadata=about)
    return file.getvalue()


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
) -> str:
    """Draw lines over common axes; `zero` starts the y axis at 0. A log axis leaves out what is ≤ 0."""
    return chart(
        lambda axes: draw_lines(axes, series, log_x=log_x, log_y=log_y, zero=zero), title, x_label, y_label
    )


def draw_lines(
    axes: Axes, series: Sequence[Series], *, log_x: bool = False, log_y: bool = False, zero: bool = True
) -> None:
    """Draw lines, with a dot where a point has no neighbours, and bands around those that have one."""
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    for colour, line in _coloured(series):
        x, y = (np.asarray(side, np.float64) for side in (line.x, line.y))
        visible = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_x)) & ((y > 0) | (not log_y))
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
    names: Sequence[str], values: Mapping[str, Sequence[float]], title: str, x_label: str = ""
) -> str:
    """Draw bars of `values[series][row]` with their number at the end; NaN has no bar but a dash."""
    for series, numbers in values.items():
        if len(numbers) != len(names):
            raise ValueError(f"{series!r} has {len(numbers)} values for {len(names)} names")
    height = 90 + len(names) * (9 + 16 * max(1, len(values)))
    return chart(lambda axes: draw_bars(axes, names, values), title, x_label, height=height)


def draw_bars(axes: Axes, names: Sequence[str], values: Mapping[str, Sequence[float]]) -> None:
    """Draw horizontal bars, one row per name, the first on top."""
    rows = np.arange(len(names), dtype=np.float64)
    thick = 0.8 / max(1, len(values))
    for number, (colour, (series, row_values)) in enumerate(_coloured(values.items())):
        numbers = np.asarray(row_values, np.float64)
        middle = rows - 0.4 + thick * (number + 0.5)
        bars = axes.barh(middle, np.nan_to_num(numbers), thick * 0.9, color=colour, label=clean(series))
        axes.bar_label(bars, [f"{n:.1f}" if math.isfinite(n) else "–" for n in numbers], padding=4)
    short = [name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…" for name in names]
    axes.set_yticks(rows, list(map(clean, short)))
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x")
    _legend(axes, len(values) if len(values) > 1 else 0)


def draw_histogram(axes: Axes, samples: Mapping[str, ArrayLike], edges: Float64) -> None:
    """Draw filled steps: how many values of each sample fall into each bin `[edge, next edge)`.

    The logarithmic y axis starts below one, so a single value shows.
    """
    floor = 0.7
    for colour, (name, values) in _coloured(samples.items()):
        opacity = 0.35 if len(samples) == 1 else 0.15
        steps = np.maximum(np.histogram(np.asarray(values), edges)[0], floor)
        axes.stairs(steps, edges, baseline=floor, fill=True, color=colour, alpha=opacity, lw=0)
        axes.stairs(steps, edges, baseline=floor, color=colour, lw=1.5, label=clean(name))
    axes.set_yscale("log")
    axes.set_ylim(bottom=floor)
    axes.set_xlim(float(edges[0]), float(edges[-1]))
    axes.grid(axis="y")
    _legend(axes, len(samples))


def occurrence_chart(
    counts: Mapping[str, ArrayLike], k: int = 10, title: str = "", items: str = "items"
) -> str:
    """Draw the k-occurrence distribution, before and after a normalisation (arXiv 2112.12777, fig. 2).

    `counts` are Nₖ `[items]` by name, such as {"before": …, "after": …}; the legend gives their skewness.
    Hubs make a long tail to the right, items that nobody retrieves a high bar at 0. The y axis is
    logarithmic, because a hub is a single item among hundreds.
    """
    arrays = {name: np.asarray(values) for name, values in counts.items()}
    edges = occurrence_edges(max(int(values.max(initial=0)) for values in arrays.values()))
    named = {f"{name}: {_skew_text(values)}": values for name, values in arrays.items()}
    x_label, y_label = f"times among the best {k}", f"{items} (log)"
    return chart(lambda axes: draw_histogram(axes, named, edges), title, x_label, y_label)


def _skew_text(counts: NDArray[Any]) -> str:
    return (
        f"skewness {skewness(counts):.2f}, largest {int(counts.max(initial=0))}, "
        f"never {100 * float(np.mean(counts == 0)):.1f}%"
    )


def _coloured(entries: Any) -> Iterator[tuple[str, Any]]:
    for number, entry in enumerate(entries):
        yield COLOURS[number % len(COLOURS)], entry


def _legend(axes: Axes, entries: int) -> None:
    if entries:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(entries, 2))
