"""From a matplotlib figure to SVG text that follows the reader's light or dark scheme.

matplotlib draws with the light palette; each of its colours becomes a CSS variable with the light colour as
fallback, for programs that know no variables. Dates, random ids and links to other namespaces are removed, so
the same figure is the same text.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from wordreel.errors import NextStep, WordreelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#2563c9", "#cf5a1b", "#178a5c", "#7d4cc2", "#a87900", "#b8336a")
DARK_COLOURS = ("#7aa7ff", "#ff9d5c", "#4fd1a0", "#bd9bff", "#e0bb4a", "#ff86b3")
PAPER, DARK_PAPER = "#ffffff", "#161a21"
INK, DARK_INK = "#3c4350", "#c4cbd8"
GRID, DARK_GRID = "#dfe3ea", "#333b49"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
DPI = 72  # one pixel of the SVG is one point


class PlotsMissing(WordreelError):
    """matplotlib is not installed."""


def _variables(paper: str, ink: str, grid: str, colours: Iterable[str]) -> str:
    hues = "".join(f"--plot-{number}:{colour};" for number, colour in enumerate(colours, start=1))
    return f"--plot-paper:{paper};--plot-ink:{ink};--plot-grid:{grid};{hues}"


_LIGHT = _variables(PAPER, INK, GRID, COLOURS)
_DARK = _variables(DARK_PAPER, DARK_INK, DARK_GRID, DARK_COLOURS)

STYLE = f":root{{{_LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
"""The CSS that a page needs once for charts drawn with `standalone=False`."""

_NAMES = {PAPER: "paper", INK: "ink", GRID: "grid"} | {
    colour: str(number) for number, colour in enumerate(COLOURS, start=1)
}


def available() -> bool:
    """Whether charts can be drawn here."""
    return find_spec("matplotlib") is not None


def escape(text: object) -> str:
    """Text for the inside of an element or a quoted attribute; what XML cannot hold becomes `�`.

    >>> escape('a < "b" & c')
    'a &lt; &quot;b&quot; &amp; c'
    """
    written = clean(str(text))
    for plain, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        written = written.replace(plain, entity)
    return written


def clean(text: str) -> str:
    """The text with `�` for what XML cannot hold.

    >>> clean("a\\x00b")
    'a�b'
    """
    return "".join(c if _allowed(ord(c)) else "�" for c in text)


def _allowed(code: int) -> bool:
    return code in (9, 10, 13) or 32 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def chart(
    draw: Callable[[Axes], None],
    title: str,
    description: str,
    width: float,
    height: float,
    standalone: bool,
) -> str:
    """The SVG of what `draw` puts on the axes.

    Standing alone it shows its title and brings its style; otherwise the page has a heading for it and holds
    `STYLE`. A screen reader gets the title and the description either way.
    """
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
        "svg.hashsalt": f"wordreel {clean(title)}",
        "text.parse_math": False,
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
        figure.set_facecolor(PAPER if standalone else "none")
        axes = figure.add_subplot()
        axes.set_facecolor("none")
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        if standalone:
            figure.suptitle(clean(title), x=0.015, ha="left", fontsize=14, fontweight="bold")
        FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None, "Creator": None})
    return _themed(file.getvalue(), title, description, standalone)


def _without_references(body: str) -> str:
    """Each `<use>` of a marker replaced by its path: ids of several charts in one page cannot clash."""
    paths = dict(re.findall(r'<path id="([^"]+)" d="([^"]*)"', body))

    def inline(use: re.Match[str]) -> str:
        target, x, y, style = use.groups()
        return f'<path d="{paths[target]}" transform="translate({x} {y})"{style or ""}/>'

    pattern = r'<use xlink:href="#([^"]+)" x="([^"]+)" y="([^"]+)"( style="[^"]*")?/>'
    body = re.sub(pattern, inline, body)
    body = re.sub(r' clip-path="[^"]*"', "", body)  # everything is drawn within the axes
    return re.sub(r"<defs>.*?</defs>", "", body, flags=re.S)  # paths, clips, and a style for all of the page


def _themed(drawn: str, title: str, description: str, standalone: bool) -> str:
    """Variables for colours, one root element without foreign namespaces, title and description."""
    body = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.S)
    body = _without_references(re.sub(r'<g id="[^"]*"', "<g", body))
    for colour, name in _NAMES.items():
        body = re.sub(rf"(?<=[: ]){colour}\b", f"var(--plot-{name},{colour})", body)
    body = re.sub(r"font-family: [^;\"]*", f"font-family: {FONT}", body)
    body = re.sub(r"font: ((?:\w+ )?[\d.]+px) [^;\"]*", rf"font: \1 {FONT}", body)
    root, _, rest = body.partition(">")
    sizes = dict(re.findall(r'(width|height|viewBox)="([^"]*)"', root))
    mark = hashlib.sha256("\0".join((title, description, rest)).encode("utf-8", "replace")).hexdigest()[:8]
    around = "".join(f' {name}="{value.removesuffix("pt")}"' for name, value in sizes.items())
    style = f"<style>{STYLE}</style>" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg"{around} class="plot" role="img" stroke-linejoin="round" '
        f'aria-labelledby="t{mark} d{mark}"><title id="t{mark}">{escape(title)}</title>'
        f'<desc id="d{mark}">{escape(description)}</desc>{style}{rest}'
    )
