"""A terminal session as an animated SVG: commands are typed, their output appears, then it starts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LINE, SIZE, MARGIN = 92, 18, 13, 16  # characters; pixels of a line, of the letters, around them
LETTER = 7.83  # pixels of a letter of that size in common monospaced fonts
TYPING, THINKING, READING = 0.045, 0.4, 3.0  # seconds: a letter, before the output, after it
PROMPT = "$ "
STYLE = (
    "text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    f"font-size:{SIZE}px;white-space:pre;fill:#d7dae0}}"
    ".p{fill:#7fd1ae}.d{fill:#8d93a1}.b{fill:#ffffff;font-weight:600}"
    "g.l{visibility:hidden}"
)


@dataclass(frozen=True)
class Command:
    """What is typed after the prompt, and what is printed."""

    typed: str
    printed: str


def animated(commands: Sequence[Command]) -> str:
    """The SVG. Each command clears the screen; where nothing moves, the first screen stands."""
    rows = max(1 + sum(len(wrapped(line)) for line in one.printed.splitlines()) for one in commands)
    height = rows * LINE + 2 * MARGIN
    width = round(WIDTH * LETTER) + 2 * MARGIN
    total = sum(len(one.typed) * TYPING + THINKING + READING for one in commands)
    parts, styles, start = [], [], 0.0
    for number, one in enumerate(commands):
        typed = start + len(one.typed) * TYPING
        end = typed + THINKING + READING
        parts.append(_line(f"c{number}", 0, f'<tspan class="p">{PROMPT}</tspan>{escape(one.typed)}'))
        styles.append(_shown(f"c{number}", start, end, total))
        row = 1
        for line in one.printed.splitlines():
            for piece in wrapped(line):
                kind = "b" if line[:1].isdigit() or line[:4].strip().rstrip(".").isdigit() else "d"
                parts.append(_line(f"o{number}", row, f'<tspan class="{kind}">{escape(piece)}</tspan>'))
                row += 1
        styles.append(_shown(f"o{number}", typed + THINKING, end, total))
        start = end
    still = "g.l{animation:none!important}g.c0,g.o0{visibility:visible}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="wordreel in a terminal">\n'
        f"<style>{STYLE}{''.join(styles)}@media (prefers-reduced-motion:reduce){{{still}}}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#17191e"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def wrapped(line: str) -> list[str]:
    """A line cut to the width of the picture; the rest is indented."""
    pieces, rest = [line[:WIDTH]], line[WIDTH:]
    while rest:
        pieces.append(" " * 8 + rest[: WIDTH - 8])
        rest = rest[WIDTH - 8 :]
    return pieces


def _line(name: str, row: int, content: str) -> str:
    y = MARGIN + row * LINE + SIZE
    return f'<g class="l {name}"><text x="{MARGIN}" y="{y}" xml:space="preserve">{content}</text></g>'


def _shown(name: str, start: float, end: float, total: float) -> str:
    """Visible from `start` to `end` seconds of each round."""
    first, last = 100 * start / total, 100 * end / total
    frames = f"0%{{visibility:hidden}}{first:.2f}%{{visibility:visible}}{last:.2f}%{{visibility:hidden}}"
    if start == 0:
        frames = f"0%{{visibility:visible}}{last:.2f}%{{visibility:hidden}}"
    return (
        f"@keyframes {name}{{{frames}100%{{visibility:hidden}}}}"
        f"g.{name}{{animation:{name} {total:.1f}s step-end infinite}}"
    )
