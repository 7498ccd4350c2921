"""Axes: which numbers to write beside them, and where a value lies on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordreel.plots.svg import GRID, INK, element, text

STEPS = (1, 2, 2.5, 5, 10)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers that lie within `[low, high]`, evenly spaced.

    >>> nice_ticks(0, 47)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    if not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        raise ValueError(f"ticks need low < high, not {low} and {high}")
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in STEPS if power * nice >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [_clean(number * step, step) for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten within `[low, high]`, with their double and fivefold where there are few of them.

    >>> log_ticks(1, 60)
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    """
    if not 0 < low < high < math.inf:
        raise ValueError(f"a logarithmic axis needs 0 < low < high, not {low} and {high}")
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    decades = math.log10(high / low)
    digits = (1, 2, 5) if decades < 3.2 else (1,)
    every = max(1, math.ceil(decades / 8))
    found = [digit * 10.0**power for power in powers if power % every == 0 for digit in digits]
    return [tick for tick in found if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def _clean(value: float, step: float) -> float:
    return round(value, max(0, 2 - math.floor(math.log10(step))))


def label(value: float) -> str:
    """A number as it stands at an axis.

    >>> label(0.5), label(20.0), label(12_000.0), label(2e6)
    ('0.5', '20', '12k', '2M')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10_000 and abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.6g}"


@dataclass(frozen=True)
class Scale:
    """Maps `[low, high]` to the pixels `[start, stop]`, evenly or by logarithm; all else lies at an end.

    >>> Scale(1, 100, 0, 200, log=True)(10)
    100.0
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"an axis goes from low to a larger high, not from {self.low} to {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"a logarithmic axis starts above 0, not at {self.low}")

    def __call__(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        return log_ticks(self.low, self.high) if self.log else nice_ticks(self.low, self.high)


def covering(values: Sequence[float], log: bool = False, zero: bool = True) -> tuple[float, float]:
    """A range that holds all finite values, from 0 if `zero`; never empty.

    >>> covering([3, 8]), covering([5], zero=False), covering([0, 1, 90], log=True)
    ((0.0, 8.0), (4.5, 5.5), (1.0, 90.0))
    """
    held = [float(value) for value in values if math.isfinite(value) and (value > 0 or not log)]
    if not held:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(held), max(held)
    if log:
        return low, high if high > low else low * 10
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        room = abs(low) * 0.1 or 0.5
        return (low, low + 1.0) if low == 0 and zero else (low - room, high + room)
    return low, high


def bottom_axis(scale: Scale, y: float, name: str, top: float | None = None) -> list[str]:
    """A line under the plot with ticks; with `top`, faint lines up to it."""
    drawn = [_axis_line(scale.start, y, scale.stop, y)]
    for tick in scale.ticks():
        x = scale(tick)
        if top is not None:
            drawn.append(_grid_line(x, y, x, top))
        drawn += [_axis_line(x, y, x, y + 4), text(label(tick), x, y + 17, text_anchor="middle")]
    if name:
        drawn.append(text(name, (scale.start + scale.stop) / 2, y + 35, text_anchor="middle"))
    return drawn


def left_axis(scale: Scale, x: float, name: str, right: float) -> list[str]:
    """Numbers left of the plot with faint lines through it."""
    drawn = []
    for tick in scale.ticks():
        y = scale(tick)
        drawn += [_grid_line(x, y, right, y), text(label(tick), x - 7, y + 4, text_anchor="end")]
    if name:
        middle = (scale.start + scale.stop) / 2
        turned = f"rotate(-90 14 {middle:.2f})"
        drawn.append(text(name, 14, middle, text_anchor="middle", transform=turned))
    return drawn


def _axis_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=INK, class_="axis")


def _grid_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=GRID, class_="grid")
