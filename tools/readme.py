"""Make the parts of README.md that are output: samples of commands, the table of figures, the pictures.

    python -m tools.readme [LIBRARY] [--folder FOLDER] [--page]

LIBRARY is the demo's (`make demo`), FOLDER its collection, which is shown as ~/Videos; without a library only
the table is made, from results/default_model. A sample stands between `<!-- sample: COMMAND -->` and
`<!-- end -->`.
`--page` also takes the picture of the page, with Chromium.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tools.history import RESULTS, Measured
from tools.terminal_svg import WIDTH, Command, animated

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FIGURES = ROOT / "results" / "default_model" / "default_model.json"
PICTURES = ROOT / "docs" / "pictures"
SHOWN_FOLDER = "~/Videos"
SAMPLE = re.compile(r"(<!-- sample: (.+?) -->\n```text\n)(.*?)(```\n<!-- end -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- figures -->\n)(.*?)(<!-- end -->)", re.DOTALL)
COLLECTION, DIRECTION = "msvd-test", "t2v"
OURS = (
    ("default", "none", "wordreel"),
    ("default", "DIS, everyday queries", "wordreel, with its query bank"),
    ("default", "DIS, msvd train captions, β without labels", "wordreel, with a bank of training captions"),
)
PAPERS = ("CE", "TT-CE+", "CLIP2Video")
SHOT = (1200, 760)
MOST_BYTES = 150_000
QUESTION = "a rocket on the launch pad"


def run_sample(command: str, library: Path, folder: Path) -> str:
    """What a command prints, with the folder of the media under the name that the README gives it."""
    words = [word.replace(SHOWN_FOLDER, str(folder)) for word in shlex.split(command)]
    if words[0] != "wordreel":
        raise SystemExit(f"a sample runs wordreel, not {words[0]}")
    program = [sys.executable, "-m", "wordreel", *words[1:], "--library", str(library)]
    ran = subprocess.run(program, capture_output=True, text=True, check=True)
    return ran.stdout.replace(str(folder), SHOWN_FOLDER)


def with_samples(text: str, library: Path, folder: Path) -> tuple[str, list[Command]]:
    """The page with its samples made again, and the samples."""
    made: list[Command] = []

    def again(match: re.Match[str]) -> str:
        printed = run_sample(match[2], library, folder)
        made.append(Command(match[2], printed))
        return f"{match[1]}{printed}{match[4]}"

    return SAMPLE.sub(again, text), made


def samples_of(text: str) -> list[Command]:
    """The samples that a page holds."""
    return [Command(match[2], match[3]) for match in SAMPLE.finditer(text)]


def with_table(text: str, known: dict[str, Any], history: bool) -> str:
    """The page with its table of figures."""
    return TABLE.sub(lambda match: f"{match[1]}{table(known, history)}{match[3]}", text)


def table(known: dict[str, Any], history: bool = False) -> str:
    """Recall on MSVD's test videos: ours as measured, others as their papers state it.

    With `history` the figures are of a model that no longer ships, and say so.
    """
    here = "measured here with an earlier model" if history else "measured here"
    rows = ["| text → video, MSVD test | R@1 | R@5 | R@10 | |", "|---|--:|--:|--:|---|"]
    for label, start, name in OURS:
        for row in known["rows"]:
            same = (row["collection"], row["direction"], row["label"]) == (COLLECTION, DIRECTION, label)
            if same and row["postprocessing"].startswith(start):
                mean = row["mean"]
                videos = f"{row['videos']} videos, {here}"
                figures = " | ".join(f"{mean[key]:.1f}" for key in ("r1", "r5", "r10"))
                rows.append(f"| {name} | {figures} | {videos} |")
                break
    for model in PAPERS:
        for row in known["published"]:
            same = (row["collection"], row["direction"], row["model"]) == (COLLECTION, DIRECTION, model)
            if same and row["postprocessing"] == "none":
                what = "fine-tuned CLIP, " if "CLIP" in model else "strong frozen experts, "
                source = f"{row['videos']} videos; {row['source']}"
                rows.append(f"| {model} | {row['R1']} | {row['R5']} | {row['R10']} | {what}{source} |")
    return "\n".join(rows) + "\n"


def take_page(library: Path, to: Path) -> None:
    """A picture of the page after a search, as WebP."""
    import cv2
    from tests.serve.browser.cdp import Browser

    from wordreel.library import Library
    from wordreel.serve.app import build_server
    from wordreel.serve.options import Options
    from wordreel.serve.service import Service

    server = build_server(Service(Library(library, create=False), Options(port=0)))
    sock = server.config.bind_socket()
    thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    browser = Browser()
    try:
        page = browser.page(*SHOT)
        page.open(f"http://127.0.0.1:{sock.getsockname()[1]}/?q={QUESTION.replace(' ', '+')}")
        page.wait("[...document.images].length > 2 && [...document.images].every(one => one.complete)")
        raw = to.with_suffix(".png")
        page.shot(raw, settle=2.0)
    finally:
        browser.close()
        server.should_exit = True
        thread.join()
    picture = cv2.imread(str(raw))
    raw.unlink()
    for quality in range(80, 10, -10):
        _, content = cv2.imencode(".webp", picture, [cv2.IMWRITE_WEBP_QUALITY, quality])
        if len(content) <= MOST_BYTES:
            break
    to.write_bytes(content.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path, nargs="?")
    parser.add_argument("--folder", type=Path, help="the collection; beside the library by default")
    parser.add_argument("--page", action="store_true", help="also take the picture of the page")
    options = parser.parse_args()
    history = FIGURES.parent.name in Measured.read(RESULTS).history
    text = with_table(README.read_text("utf-8"), json.loads(FIGURES.read_text("utf-8")), history)
    README.write_text(text, "utf-8")
    if options.library is None:
        return
    folder = (options.folder or options.library.parent / "collection").resolve()
    text, samples = with_samples(text, options.library, folder)
    README.write_text(text, "utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "terminal.svg").write_text(animated(samples), "utf-8")
    if options.page:
        take_page(options.library, PICTURES / "page.webp")
    print(f"{len(samples)} samples, {WIDTH} characters wide; pictures in {PICTURES}")


if __name__ == "__main__":
    main()
