"""Line charts: recall curves, losses over steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from wordreel.plots.axes import Scale, bottom_axis, covering, left_axis
from wordreel.plots.frame import with_legend
from wordreel.plots.svg import element, fill_colour, line_colour, number, picture

Numbers = Sequence[float] | NDArray[Any]


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
    height: float = 300,
    standalone: bool = True,
) -> str:
    """Several lines over common axes; `zero` starts the y axis at 0. What a log axis cannot show is left out.

    >>> line_chart([Series("loss", [0, 1], [2.0, 1.0])], "Loss").startswith("<svg")
    True
    """
    xs = [float(x) for line in series for x in line.x]
    ys = [
        float(y)
        for line in series
        for side in (line.y, line.low, line.high)
        if side is not None
        for y in side
    ]
    frame, legend = with_legend([line.name for line in series], width, height)
    across = Scale(*covering(xs, log_x, zero=False), frame.x0, frame.x1, log_x)
    up = Scale(*covering(ys, log_y, zero), frame.y0, frame.y1, log_y)
    drawn = [*left_axis(up, frame.x0, y_label, frame.x1), *bottom_axis(across, frame.y0, x_label)]
    for place, line in enumerate(series):
        drawn += _band(line, place, across, up)
        drawn += _line(line, place, across, up)
    ends = "; ".join(f"{line.name} ends at {line.y[-1]:.4g}" for line in series if len(line.y))
    return picture(
        title, description or ends, frame.width, frame.height, *legend, *drawn, standalone=standalone
    )


def _pieces(xs: Numbers, ys: Numbers, across: Scale, up: Scale) -> list[list[str]]:
    """Runs of points that can be shown."""
    runs: list[list[str]] = [[]]
    for x, y in zip(xs, ys, strict=True):
        if not _shown(float(x), across) or not _shown(float(y), up):
            runs.append([])
            continue
        runs[-1].append(f"{number(across(float(x)))},{number(up(float(y)))}")
    return [run for run in runs if run]


def _shown(value: float, scale: Scale) -> bool:
    return math.isfinite(value) and (value > 0 or not scale.log)


def _line(line: Series, place: int, across: Scale, up: Scale) -> list[str]:
    dashes = "5 4" if line.dashed else None
    drawn = []
    for run in _pieces(line.x, line.y, across, up):
        if len(run) == 1:
            x, y = run[0].split(",")
            drawn.append(element("circle", cx=x, cy=y, r=3, **fill_colour(place)))
        else:
            drawn.append(
                element(
                    "polyline",
                    points=" ".join(run),
                    stroke_width=2,
                    stroke_linejoin="round",
                    stroke_dasharray=dashes,
                    **line_colour(place),
                )
            )
    return drawn


def _band(line: Series, place: int, across: Scale, up: Scale) -> list[str]:
    if line.low is None or line.high is None:
        return []
    sides = [(float(x), float(a), float(b)) for x, a, b in zip(line.x, line.low, line.high, strict=True)]
    held = [(x, a, b) for x, a, b in sides if _shown(x, across) and _shown(a, up) and _shown(b, up)]
    if len(held) < 2:
        return []
    there = [f"{number(across(x))},{number(up(b))}" for x, _, b in held]
    back = [f"{number(across(x))},{number(up(a))}" for x, a, _ in reversed(held)]
    return [element("polygon", points=" ".join(there + back), fill_opacity=0.18, **fill_colour(place))]
