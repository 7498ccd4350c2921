"""What reading parts of frames saves, and which lines of text it misses.

    python benchmarks/ocr.py CLIPS [--every 10] [--out FILE.json]

Takes every tenth clip of a folder. After a frame without text, the expert reads only the part of the next in
which a cheap look sees some; its slow twin reads every frame that changed as a whole. `lines` counts a line
once for each clip that shows it, `frames` once for each frame; `found` is the share of the twin's lines that
the expert has, `more` the share of the expert's that the twin has not. Milliseconds are of processor time, a
frame.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wordreel.experts.ocr import CARD, ChangeReader, is_same_line
from wordreel.experts.ocr_reader import WHOLE, RapidOcrReader, Region, TextLine
from wordreel.media import Fence
from wordreel.media.types import FrameNeed, Frames
from wordreel.runtime.sessions import shared_by
from wordreel.util.machine import cores


class WholeFrames:
    """The slow twin: everything is likely to hold text."""

    def __init__(self, reader: RapidOcrReader) -> None:
        self._reader = reader

    def read(self, image: Any, part: Region = WHOLE) -> tuple[TextLine, ...]:
        return self._reader.read(image)

    def likely(self, image: Any) -> Region | None:
        return WHOLE


def missing(wanted: Sequence[TextLine], found: Sequence[TextLine]) -> list[str]:
    """The lines that are not among those found."""
    return [line.text for line in wanted if not any(is_same_line(line.text, one.text) for one in found)]


def distinct(frames: Sequence[tuple[TextLine, ...]]) -> list[TextLine]:
    lines: list[TextLine] = []
    for frame in frames:
        lines += [line for line in frame if missing([line], lines)]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clips", type=Path)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    need = CARD.need
    assert isinstance(need, FrameNeed)
    with shared_by(cores()):
        reader = RapidOcrReader()
    spent = {"parts": 0.0, "whole": 0.0}
    counts = {kind: {"twin": 0, "expert": 0, "missed": 0, "more": 0} for kind in ("lines", "frames")}
    lost: list[str] = []
    frames = 0

    def timed(name: str, read: Callable[[Any], Any], image: Any) -> Any:
        began = time.process_time()
        text = read(image)
        spent[name] += time.process_time() - began
        return text

    def compare(kind: str, twin: Sequence[TextLine], expert: Sequence[TextLine]) -> list[str]:
        missed = missing(twin, expert)
        for key, value in (
            ("twin", len(twin)),
            ("expert", len(expert)),
            ("missed", len(missed)),
            ("more", len(missing(expert, twin))),
        ):
            counts[kind][key] += value
        return missed

    with Fence() as fence:
        for clip in sorted(options.clips.glob("*.mp4"))[:: options.every]:
            parts, whole = ChangeReader(reader), ChangeReader(WholeFrames(reader))
            few, every = [], []
            for window in fence.stream(clip, [need]):
                media = window.parts[0]
                assert isinstance(media, Frames)
                for image in media.images:
                    few.append(timed("parts", parts, image))
                    every.append(timed("whole", whole, image))
            frames += len(few)
            for twin, expert in zip(every, few, strict=True):
                compare("frames", twin, expert)
            lost += compare("lines", distinct(every), distinct(few))
    result: dict[str, Any] = {
        "clips": f"every {options.every}th of {options.clips.name or options.clips}",
        "images": frames,
        "milliseconds": {name: round(1e3 * value / frames) for name, value in spent.items()},
        "ratio": round(spent["whole"] / spent["parts"], 2),
    }
    for kind, count in counts.items():
        result[kind] = {
            **count,
            "found": round(1 - count["missed"] / max(1, count["twin"]), 3),
            "more": round(count["more"] / max(1, count["expert"]), 3),
        }
    result["lost"] = lost
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
