"""The rectangle that a chart is drawn in, with its legend above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wordreel.plots.svg import element, fill_colour, text

LETTER = 6.6  # pixels that a letter of the legend takes, at most
ROW = 18.0


@dataclass(frozen=True)
class Frame:
    """A picture of `width` × `height` whose chart lies between the four margins."""

    width: float = 560
    height: float = 320
    left: float = 58
    right: float = 16
    top: float = 14
    bottom: float = 46

    @property
    def x0(self) -> float:
        return self.left

    @property
    def x1(self) -> float:
        return self.width - self.right

    @property
    def y0(self) -> float:
        return self.height - self.bottom

    @property
    def y1(self) -> float:
        return self.top


def with_legend(
    names: Sequence[str], width: float, height: float, **margins: float
) -> tuple[Frame, list[str]]:
    """A frame with room for a legend of several rows above the chart, and the legend."""
    frame = Frame(width, height, **margins)
    x, row, drawn = frame.x0, 0, []
    for place, name in enumerate(names):
        needed = 34 + LETTER * len(name)
        if x > frame.x0 and x + needed > frame.x1:
            x, row = frame.x0, row + 1
        y = frame.top + ROW * row
        drawn.append(element("rect", x=x, y=float(y), width=11.0, height=11.0, rx=2, **fill_colour(place)))
        drawn.append(text(name, x + 16, y + 10))
        x += needed
    rows = row + 1 if names else 0
    return Frame(
        width, height + ROW * rows, **{**margins, "top": frame.top + ROW * rows + 4 * bool(rows)}
    ), drawn
