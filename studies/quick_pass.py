"""How much of the thorough pass's recall a quick look at key frames reaches.

    python studies/quick_pass.py --data DATA --msvd msvd.lib --msrvtt msrvtt.lib [--out results/quick_pass]

The libraries are those of the thorough pass. The same files are given to the quick pass, with the same
experts, in a library under `--cache`, and the captions ask both with the default model, plain. Writes
`quick_pass.json` and the table of `README.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import Facts, Told, captions_of, parse_weights, parser, progress

import wordreel
from wordreel.lab.evaluate.library import score
from wordreel.retrieval.caption_ranks import text_to_video
from wordreel.search.searcher import Searcher

COLLECTIONS = {"msvd": ("test", "MSVD test"), "msrvtt": ("all", "240 MSR-VTT videos with sound")}
COLUMNS = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "median_rank": "MdR"}


def looked(thorough: Path, told: Told, folder: Path) -> wordreel.Library:
    """A library of the captioned files of another, after the quick pass alone."""
    with wordreel.Library(thorough, create=False) as library:
        names = set(told)
        files = [
            Path(f.path) for f in library.store.files() if {Path(f.path).name, Path(f.path).stem} & names
        ]
        experts = sorted(library.store.expert_names() & {"clip", "ocr", "sound", "speech"})
    quick = wordreel.Library(folder)
    report = quick.add(*files, experts=experts, passes=["quick"])
    progress(f"{folder.name}: quick look at {len(report.added)} files in {report.seconds:.0f} s")
    return quick


def recall(library: wordreel.Library, told: Told) -> dict[str, Any]:
    """Text to video, plain, through the path that a search takes."""
    scored = score(Searcher.open(library.store, library.model), told)
    return asdict(text_to_video(scored.similarities, scored.captions)) | {"videos": len(scored.videos)}


def compare(name: str, thorough: Path, told: Told, cache: Path) -> dict[str, Any]:
    """The figures of both passes on one collection."""
    with looked(thorough, told, cache / f"quick-{name}.lib") as quick:
        few = recall(quick, told)
    with wordreel.Library(thorough, create=False) as library:
        library.embed()
        most = recall(library, told)
    share = {key: few[key] / most[key] for key in ("r1", "r5", "r10")}
    asked = {"captions": max(map(len, told.values()))}
    return {"title": COLLECTIONS[name][1], **asked, "thorough": most, "quick": few, "share": share}


def text_of(results: Sequence[dict[str, Any]]) -> str:
    """The README of the results."""
    lines = [
        "# What a quick look finds",
        "",
        "Text → video with the default model, plain ranking, over the files of each collection: after the",
        "quick pass (key frames, and frames between where they are cheap to decode) and the thorough one.",
        f"The first {results[0]['captions']} captions of each video ask.",
        "",
        f"| collection | videos | pass | {' | '.join(COLUMNS.values())} |",
        "|---|---|---|" + "---|" * len(COLUMNS),
    ]
    for one in results:
        for kind in ("quick", "thorough"):
            values = " | ".join(f"{one[kind][key]:.1f}" for key in COLUMNS)
            lines.append(f"| {one['title']} | {one[kind]['videos']} | {kind} | {values} |")
        shares = " | ".join(f"{one['share'][key]:.0%}" for key in ("r1", "r5", "r10"))
        lines.append(f"| | | quick / thorough | {shares} | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options = parser(__doc__, "quick_pass")
    options.add_argument("--captions", type=int, default=5, help="of each video, that ask (5)")
    arguments = options.parse_args()
    facts = Facts("quick_pass", arguments, parse_weights(None))
    results = []
    for name, (split, _) in COLLECTIONS.items():
        library = getattr(arguments, name)
        if library is not None:
            every = captions_of(arguments.data, name)[split]
            told = {item: texts[: arguments.captions] for item, texts in every.items()}
            results.append(compare(name, library, told, arguments.cache))
    facts.write({"results": results}, text_of(results), {})


if __name__ == "__main__":
    main()
