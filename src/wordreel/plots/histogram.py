"""Histograms of one or several samples over common bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from wordreel.plots.axes import Scale, bottom_axis, covering, label, left_axis
from wordreel.plots.frame import with_legend
from wordreel.plots.svg import element, escape, fill_colour, line_colour, number, picture
from wordreel.types import Float64


def log_edges(low: float, high: float, bins: int = 30) -> Float64:
    """Edges of bins for whole numbers from `low ≥ 1` to `high`: the first alone, then equally wide in log.

    >>> log_edges(1, 10, 4).tolist()
    [1.0, 2.0, 3.0, 6.0, 11.0]
    """
    if not 1 <= low <= high:
        raise ValueError(f"whole numbers from 1 up are binned, not {low} to {high}")
    whole = np.floor(np.geomspace(low, high + 1, bins + 1) + 1e-9)
    return np.asarray(np.unique([*whole, math.floor(low) + 1, math.floor(high) + 1]), np.float64)


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
    height: float = 300,
    standalone: bool = True,
) -> str:
    """How many values of each sample fall into each bin `[edge, next edge)`, the last one closed.

    `share` gives per cent of the sample. A logarithmic y axis starts below 1, so a single value is seen.
    Several samples have a `legend`, one alone only if it is asked for.
    """
    edges = np.asarray(edges, np.float64)
    if len(edges) < 2 or (np.diff(edges) <= 0).any():
        raise ValueError("the edges of bins go up, and there are at least two")
    counts = {name: np.histogram(np.asarray(values), edges)[0] for name, values in samples.items()}
    heights = {
        name: 100 * held / max(1, np.asarray(samples[name]).size) if share else held.astype(np.float64)
        for name, held in counts.items()
    }
    named = len(samples) > 1 if legend is None else legend
    frame, names = with_legend(list(samples) if named else [], width, height)
    top = max((float(held.max()) for held in heights.values()), default=1.0)
    low = (
        0.7 if not share else 0.7 * min((float(h[h > 0].min(initial=1)) for h in heights.values()), default=1)
    )
    up = Scale(*((low, max(top, low * 2)) if log_y else covering([top])), frame.y0, frame.y1, log_y)
    across = Scale(float(edges[0]), float(edges[-1]), frame.x0, frame.x1, log_x)
    drawn = [*left_axis(up, frame.x0, y_label, frame.x1), *bottom_axis(across, frame.y0, x_label)]
    for place, (name, held) in enumerate(heights.items()):
        drawn += _bars(
            held, counts[name], edges, name, place, across, up, 0.35 if len(heights) == 1 else 0.15
        )
        if len(samples) > 1:
            drawn.append(_outline(held, edges, place, across, up))
    said = "; ".join(
        f"{name}: {int(c.sum())} values, most in one bin {int(c.max())}" for name, c in counts.items()
    )
    return picture(
        title, description or said, frame.width, frame.height, *names, *drawn, standalone=standalone
    )


def _bars(
    heights: Float64,
    counts: object,
    edges: Float64,
    name: str,
    place: int,
    across: Scale,
    up: Scale,
    opacity: float,
) -> list[str]:
    drawn = []
    for value, count, left, right in zip(heights, np.asarray(counts), edges, edges[1:], strict=False):
        if value <= 0:
            continue
        x, y = across(left), up(float(value))
        drawn.append(
            element(
                "rect",
                element("title", escape(f"{name} {_span(left, right)}: {count}")),
                x=x,
                y=y,
                width=across(right) - x,
                height=up.start - y,
                fill_opacity=opacity,
                **fill_colour(place),
            )
        )
    return drawn


def _outline(heights: Float64, edges: Float64, place: int, across: Scale, up: Scale) -> str:
    points = [(edges[0], 0.0)]
    for value, left, right in zip(heights, edges, edges[1:], strict=False):
        points += [(left, value), (right, value)]
    points.append((edges[-1], 0.0))
    path = " ".join(f"{number(across(x))},{number(up(float(y)))}" for x, y in points)
    return element("polyline", points=path, stroke_width=1.75, stroke_linejoin="round", **line_colour(place))


def _span(left: float, right: float) -> str:
    whole = float(left).is_integer() and float(right).is_integer()
    if whole and right - left == 1:
        return label(left)
    return f"{label(left)}–{label(right - 1 if whole else right)}"
