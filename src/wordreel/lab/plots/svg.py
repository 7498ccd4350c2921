"""From matplotlib axes to SVG text: the same text for the same data."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from wordreel.errors import NextStep, WordreelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#2563c9", "#cf5a1b", "#178a5c", "#7d4cc2", "#a87900", "#b8336a")
INK, GRID = "#3c4350", "#dfe3ea"
DPI = 72  # one pixel of the SVG is one point


class PlotsMissing(WordreelError):
    """matplotlib is not installed."""


def available() -> bool:
    """Whether charts can be drawn here."""
    return find_spec("matplotlib") is not None


def clean(text: str) -> str:
    """Replace what XML cannot hold by `�`.

    >>> clean("a\\x00b")
    'a�b'
    """
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)


def chart(draw: Callable[[Axes], None], title: str, description: str, width: float, height: float) -> str:
    """Return the SVG of what `draw` puts on the axes, with title and description for screen readers."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotsMissing(
            "charts need matplotlib", NextStep("install it: pip install 'wordreel[plots]'")
        ) from None
    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": "wordreel",
        "text.parse_math": False,
        "font.family": "sans-serif",
        "font.size": 11,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.edgecolor": INK,
        "grid.color": GRID,
    }
    file = io.StringIO()
    with rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # glyphs that matplotlib's font lacks: the reader's font draws them
        figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        if title:
            figure.suptitle(clean(title), x=0.015, ha="left", fontsize=14, fontweight="bold")
        about = {"Title": clean(title), "Description": clean(description), "Date": None, "Creator": None}
        FigureCanvasSVG(figure).print_svg(file, metadata=about)
    return file.getvalue()
