"""Horizontal bars: one row per name, one bar per series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wordreel.plots.axes import Scale, bottom_axis, covering, label
from wordreel.plots.frame import LETTER, with_legend
from wordreel.plots.svg import element, escape, fill_colour, picture, text

BAR = 15.0
GAP = 9.0
LONGEST = 34  # letters of a row's name


def bar_chart(
    names: Sequence[str],
    values: Mapping[str, Sequence[float]],
    title: str,
    x_label: str = "",
    *,
    digits: int = 1,
    description: str = "",
    width: float = 560,
    standalone: bool = True,
) -> str:
    """Bars of `values[series][row]` with their number at the end; NaN has no bar and is said to be missing.

    >>> "a dog" in bar_chart(["a dog"], {"R@10": [31.0]}, "By query")
    True
    """
    for series, held in values.items():
        if len(held) != len(names):
            raise ValueError(f"{series!r} has {len(held)} values for {len(names)} names")
    shown = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in names]
    row = BAR * max(1, len(values)) + GAP
    margin = 16 + LETTER * max((len(name) for name in shown), default=0)
    frame, legend = with_legend(
        list(values) if len(values) > 1 else [], width, 70 + row * len(names), left=margin, right=54
    )
    across = Scale(*covering([x for held in values.values() for x in held]), frame.x0, frame.x1)
    drawn = bottom_axis(across, frame.y0, x_label, frame.y1)
    for number, name in enumerate(shown):
        top = frame.y1 + number * row + GAP / 2
        drawn.append(text(name, frame.x0 - 8, top + (row - GAP) / 2 + 4, text_anchor="end"))
        for place, (series, held) in enumerate(values.items()):
            drawn += _bar(
                float(held[number]), f"{names[number]}, {series}", place, top + place * BAR, across, digits
            )
    said = "; ".join(
        f"{name}: " + ", ".join(f"{series} {held[at]:.{digits}f}" for series, held in values.items())
        for at, name in enumerate(names)
    )
    return picture(
        title, description or said, frame.width, frame.height, *legend, *drawn, standalone=standalone
    )


def _bar(value: float, name: str, place: int, top: float, across: Scale, digits: int) -> list[str]:
    if not math.isfinite(value):
        return [text("–", across(across.low) + 5, top + BAR - 3.5)]
    zero, end = across(0.0), across(value)
    written = f"{value:.{digits}f}" if abs(value) < 10_000 else label(value)
    bar = element(
        "rect",
        element("title", escape(f"{name}: {written}")),
        x=min(zero, end),
        y=top + 1,
        width=max(abs(end - zero), 0.75),
        height=BAR - 2,
        rx=2,
        **fill_colour(place),
    )
    return [bar, text(written, max(zero, end) + 5, top + BAR - 3.5)]
