"""SVG as text: escaped, with numbers written one way, readable in a light and in a dark room.

Colours are given twice. The `fill` and `stroke` attributes are for programs that know no CSS variables; the
classes of `STYLE` override them in a browser and follow `prefers-color-scheme`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

COLOURS = ("#2563c9", "#cf5a1b", "#178a5c", "#7d4cc2", "#a87900", "#b8336a")
DARK_COLOURS = ("#7aa7ff", "#ff9d5c", "#4fd1a0", "#bd9bff", "#e0bb4a", "#ff86b3")
PAPER, DARK_PAPER = "#ffffff", "#161a21"
HEADING = 32  # pixels that a title takes
INK, DARK_INK = "#3c4350", "#c4cbd8"
GRID, DARK_GRID = "#dfe3ea", "#333b49"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def _variables(paper: str, ink: str, grid: str, colours: Iterable[str]) -> str:
    hues = "".join(f"--plot-{number}:{colour};" for number, colour in enumerate(colours, start=1))
    return f"--plot-paper:{paper};--plot-ink:{ink};--plot-grid:{grid};{hues}"


_LIGHT = _variables(PAPER, INK, GRID, COLOURS)
_DARK = _variables(DARK_PAPER, DARK_INK, DARK_GRID, DARK_COLOURS)

STYLE = (
    f":root{{{_LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    ".plot .paper{fill:var(--plot-paper)}.plot text{fill:var(--plot-ink)}"
    ".plot .axis{stroke:var(--plot-ink)}.plot .grid{stroke:var(--plot-grid)}"
    + "".join(
        f".plot .line{n}{{stroke:var(--plot-{n})}}.plot .fill{n}{{fill:var(--plot-{n})}}"
        for n in range(1, len(COLOURS) + 1)
    )
)
"""What a page puts into its style sheet once, to show plots that are made with `standalone=False`."""


def escape(text: object) -> str:
    """Text for the inside of an element or a quoted attribute; what XML cannot hold is shown as `�`.

    >>> escape('a < "b" & c')
    'a &lt; &quot;b&quot; &amp; c'
    """
    kept = "".join(c if _allowed(ord(c)) else "�" for c in str(text))
    for plain, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        kept = kept.replace(plain, written)
    return kept


def _allowed(code: int) -> bool:
    return code in (9, 10, 13) or 32 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def number(value: float) -> str:
    """A coordinate: two places at most, no trailing zeros, never "-0".

    >>> number(3.0), number(-0.001), number(12.3456)
    ('3', '0', '12.35')
    """
    if not math.isfinite(value):
        raise ValueError(f"a coordinate must be finite, not {value}")
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, *inside: str, **attributes: object) -> str:
    """`<name attributes>inside</name>`. Underscores in attribute names are hyphens; `inside` is markup.

    >>> element("line", x1=0.5, class_="grid")
    '<line x1="0.5" class="grid"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>" if inside else f"<{name}{written}/>"


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else escape(value)


def text(words: object, x: float, y: float, **attributes: object) -> str:
    """Words at a place."""
    return element("text", escape(words), x=float(x), y=float(y), **{"fill": INK, **attributes})


def line_colour(place: int) -> dict[str, object]:
    """Attributes of a stroke in the colour of series `place`, counted from 0."""
    at = place % len(COLOURS)
    return {"stroke": COLOURS[at], "class_": f"line{at + 1}", "fill": "none"}


def fill_colour(place: int) -> dict[str, object]:
    """Attributes of an area in the colour of series `place`, counted from 0."""
    at = place % len(COLOURS)
    return {"fill": COLOURS[at], "class_": f"fill{at + 1}"}


def picture(
    title: str, description: str, width: float, height: float, *body: str, standalone: bool = True
) -> str:
    """A whole drawing, which tells a screen reader its `title` and `description`.

    Standing alone it shows its title and brings its style and its paper; otherwise the page has a heading for
    it and holds `STYLE`.
    """
    mark = hashlib.sha256("\0".join((title, description, *body)).encode("utf-8", "replace")).hexdigest()[:8]
    around = list(body)
    if standalone:
        paper = element("rect", width="100%", height="100%", fill=PAPER, class_="paper")
        heading = text(title, 14, 24, font_size=14, font_weight=600)
        moved = element("g", *body, transform=f"translate(0 {HEADING})")
        around = [element("style", STYLE), paper, heading, moved]
        height += HEADING
    return element(
        "svg",
        element("title", escape(title), id=f"t{mark}"),
        element("desc", escape(description), id=f"d{mark}"),
        *around,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=number(width),
        height=number(height),
        class_="plot",
        role="img",
        aria_labelledby=f"t{mark} d{mark}",
        font_family=FONT,
        font_size=12,
    )
