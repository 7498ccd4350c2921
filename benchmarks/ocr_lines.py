"""What reading lines of text at their own width gains, and whether they are read as well.

    python benchmarks/ocr_lines.py PICTURES CAPTIONS [--frames 200] [--out FILE.json]

Pieces of captions are drawn over pictures, in several fonts and sizes, some on a bar, and compressed; half of
the frames are made small and large again. Each frame is read with the lines at their own width and, as
rapidocr does, padded to 320 pixels and to the widest of six. `exact` is the share of lines that come out as
they were drawn, `character_errors` edits for each character that was drawn, against the nearest line found.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import matplotlib
import numpy as np
from omegaconf import flag_override
from PIL import Image, ImageDraw, ImageFont
from rapidocr.ch_ppocr_rec import TextRecognizer

from wordreel.experts.ocr_reader import RapidOcrReader, checked_models
from wordreel.runtime.sessions import open_session, shared_by
from wordreel.util.machine import cores

FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono", "STIXGeneral")
SIZES = (14, 18, 22, 28, 40)
COLOURS = (((255, 255, 255), (0, 0, 0)), ((255, 230, 60), (20, 20, 20)), ((10, 10, 10), (240, 240, 240)))
FRAME = (853, 480)


def padding_reader() -> RapidOcrReader:
    """The reader with rapidocr's own recogniser."""
    reader = RapidOcrReader()
    settings = reader._engine.cfg
    with flag_override(settings, "allow_objects", True):
        settings.Rec.session = open_session(checked_models()[1])
        settings.Rec.engine_cfg = settings.EngineConfig.onnxruntime
        settings.Rec.font_path = None
        reader._engine.text_rec = TextRecognizer(settings.Rec)
    return reader


def piece_of(captions: Sequence[str], rng: random.Random) -> str:
    words = rng.choice(captions).split()
    count = rng.choice([1, 1, 2, 3, 5, 8])
    first = rng.randrange(max(1, len(words) - count + 1))
    text = " ".join(words[first : first + count])
    return rng.choice([text, text.upper(), text.title(), f"{text} {rng.randint(1, 2030)}"])


def frames(pictures: Sequence[Path], captions: Sequence[str], count: int) -> Iterator[tuple[Any, list[str]]]:
    """Frames, RGB, and the lines drawn on each."""
    rng = random.Random(3)
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for number in range(count):
        image = Image.open(rng.choice(pictures)).convert("RGB").resize(FRAME)
        draw, drawn, top = ImageDraw.Draw(image), [], 15
        for _ in range(rng.randint(1, 4)):
            text = piece_of(captions, rng)
            font = ImageFont.truetype(str(folder / f"{rng.choice(FONTS)}.ttf"), rng.choice(SIZES))
            width = draw.textlength(text, font=font)
            if width > FRAME[0] - 50 or top > FRAME[1] - 60:
                continue
            ink, paper = rng.choice(COLOURS)
            left = rng.uniform(10, FRAME[0] - 20 - width)
            if rng.random() < 0.5:
                draw.rectangle((left - 6, top - 3, left + width + 6, top + font.size + 8), fill=paper)
            outline = rng.randint(0, 1)
            draw.text((left, top), text, font=font, fill=ink, stroke_width=outline, stroke_fill=paper)
            drawn.append(text)
            top += int(font.size) + rng.randint(20, 70)
        quality = [cv2.IMWRITE_JPEG_QUALITY, rng.choice([25, 40, 70])]
        frame = cv2.imdecode(cv2.imencode(".jpg", np.array(image)[..., ::-1], quality)[1], 1)
        assert frame is not None
        frame = frame[..., ::-1]
        if number % 2:
            small = cv2.resize(frame, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)
            frame = cv2.resize(small, FRAME)
        yield np.ascontiguousarray(frame), drawn


def edits(one: str, other: str) -> int:
    """Levenshtein's distance."""
    row = list(range(len(other) + 1))
    for number, a in enumerate(one, 1):
        corner, row[0] = row[0], number
        for place, b in enumerate(other, 1):
            corner, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, corner + (a != b))
    return row[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pictures", type=Path)
    parser.add_argument("captions", type=Path, help="JSON: id to a list of captions")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    captions = [text for texts in json.loads(options.captions.read_text()).values() for text in texts]
    with shared_by(cores()):
        readers = {"own width": RapidOcrReader(), "padded": padding_reader()}
    spent = dict.fromkeys(readers, 0.0)
    counts = {name: [0, 0, 0, 0] for name in readers}  # lines, exact ones, characters, errors
    for frame, drawn in frames(sorted(options.pictures.iterdir()), captions, options.frames):
        for name, reader in readers.items():
            began = time.process_time()
            found = [line.text for line in reader.read(frame)]
            spent[name] += time.process_time() - began
            for text in drawn:
                errors = min((edits(text, line) for line in found), default=len(text))
                for place, value in enumerate((1, text in found, len(text), min(errors, len(text)))):
                    counts[name][place] += value
    result = {
        "frames": options.frames,
        "lines": counts["padded"][0],
        **{
            name: {
                "exact": round(count[1] / count[0], 4),
                "character_errors": round(count[3] / count[2], 4),
                "milliseconds": round(1e3 * spent[name] / options.frames, 1),
            }
            for name, count in counts.items()
        },
        "ratio": round(spent["padded"] / spent["own width"], 2),
    }
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
