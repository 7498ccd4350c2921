"""Frames of a hit as a strip in the terminal: the protocols of kitty and iTerm2.

Kitty:  https://sw.kovidgoyal.net/kitty/graphics-protocol/
iTerm2: https://iterm2.com/documentation-images.html
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import MediaError, NextStep, WordreelError

if TYPE_CHECKING:
    from wordreel.search.hits import Hit

Image = NDArray[np.uint8]
"""`[height, width, 3]` RGB."""

FRAMES, HEIGHT, GAP = 5, 72, 4  # of a strip: frames, and pixels
SHORTEST = 0.2  # seconds between two frames
VARIABLE = "WORDREEL_PICTURES"
KITTY_TERMS, KITTY_PROGRAMS = ("xterm-kitty", "xterm-ghostty"), ("ghostty",)
ITERM_PROGRAMS = ("iTerm.app", "WezTerm", "mintty", "rio")
CHUNK = 4096  # characters of one escape sequence, kitty's limit


def picture_protocol(known: Mapping[str, str]) -> str:
    """Return the protocol of the terminal that these environment variables describe: kitty or iterm2."""
    wanted = known.get(VARIABLE, "")
    if wanted:
        if wanted not in PROTOCOLS:
            raise WordreelError(f"{VARIABLE} is one of {', '.join(PROTOCOLS)}, not {wanted!r}")
        return wanted
    term, program = known.get("TERM", ""), known.get("TERM_PROGRAM", "")
    if known.get("KITTY_WINDOW_ID") or term.startswith(KITTY_TERMS) or program in KITTY_PROGRAMS:
        return "kitty"
    if program in ITERM_PROGRAMS or known.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    raise WordreelError(
        "--preview needs a terminal that shows pictures, and this one is not known to",
        NextStep(f"use kitty or iTerm2, or set {VARIABLE} to {', '.join(PROTOCOLS)} if yours can"),
    )


def strip_of(hit: Hit) -> Image:
    """Draw frames over the moment of a hit, side by side."""
    from wordreel.media import frames

    length = max(0.0, hit.end - hit.start)
    step = max(SHORTEST, length / FRAMES)
    end = hit.start + max(length, SHORTEST)
    images = frames(hit.path, 1 / step, HEIGHT, hit.start, end).images[:FRAMES]
    return side_by_side([picture[: HEIGHT * 4, : HEIGHT * 4] for picture in images])


def side_by_side(images: list[Image]) -> Image:
    """Draw pictures in a row, with a gap between them."""
    height = max(len(image) for image in images)
    padded = [np.pad(image, ((0, height - len(image)), (0, GAP), (0, 0))) for image in images]
    return np.concatenate(padded, axis=1)[:, :-GAP]


def kitty(image: Image) -> str:
    """Return the sequences that transmit and show a PNG."""
    data = base64.b64encode(png(image)).decode()
    parts = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    sequences = []
    for number, part in enumerate(parts):
        more = int(number + 1 < len(parts))
        keys = f"a=T,f=100,q=2,m={more}" if number == 0 else f"m={more}"
        sequences.append(f"\x1b_G{keys};{part}\x1b\\")
    return "".join(sequences)


def iterm2(image: Image) -> str:
    """Return the sequence that shows a PNG."""
    content = png(image)
    size = f"width={image.shape[1]}px;height={len(image)}px"
    return f"\x1b]1337;File=inline=1;size={len(content)};{size}:{base64.b64encode(content).decode()}\a"


def png(image: Image) -> bytes:
    """Return the picture as PNG."""
    import cv2

    return cv2.imencode(".png", image[..., ::-1])[1].tobytes()


PROTOCOLS: dict[str, Callable[[Image], str]] = {"kitty": kitty, "iterm2": iterm2}


def previewer() -> Callable[[Hit], str]:
    """Return what draws the strip of a hit in this terminal, or says why there is none."""
    draw = PROTOCOLS[picture_protocol(os.environ)]

    def preview(hit: Hit) -> str:
        try:
            return draw(strip_of(hit))
        except (MediaError, OSError) as error:
            return f"no preview: {error}"

    return preview
