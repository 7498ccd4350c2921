"""The table of `small_clip.py`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

RECALLS = ("r1", "r5", "r10")


def write_table(runs: Path, out: Path) -> None:
    """Gather the figures of all seeds into `small_clip.json` and `README.md`."""
    rows = [json.loads(path.read_text()) for path in sorted(runs.glob("seed-*/*.json"))]
    loading = json.loads((runs / "loading.json").read_text()) if (runs / "loading.json").is_file() else []
    out.mkdir(parents=True, exist_ok=True)
    (out / "small_clip.json").write_text(json.dumps({"runs": rows, "loading": loading}, indent=1) + "\n")
    (out / "README.md").write_text(_text(rows, loading))


def _text(rows: list[dict[str, Any]], loading: list[dict[str, Any]]) -> str:
    first = rows[0]
    gallery = first["test_videos"]
    lines = [
        "# A small CLIP from scratch",
        "",
        f"MSVD test, {gallery} of the 670 videos, {first['test_captions']:,} captions, no post-processing;",
        f"chance is R@1 {100 / gallery:.2f}, R@10 {1000 / gallery:.2f}. Mean ± deviation over seeds.",
        "",
        "| model | seeds | size | R@1 | R@5 | R@10 | MdR | v→t R@1 | R@10 | val R@1 | clips/s | waiting |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in dict.fromkeys(row["name"] for row in rows):
        same = [row for row in rows if row["name"] == name]
        t2v = [[row["test"]["t2v"][key] for row in same] for key in RECALLS]
        median = mean(row["test"]["t2v"]["median_rank"] for row in same)
        v2t = [mean(row["test"]["v2t"][key] for row in same) for key in ("r1", "r10")]
        val = mean(row["val"]["t2v"]["r1"] for row in same)
        cells = [
            f"{same[0]['title']} (`{name}`)",
            str(len(same)),
            f"{same[0]['parameters'] / 1e6:.1f} M",
            *(f"{mean(values):.1f} ± {pstdev(values):.1f}" for values in t2v),
            f"{median:.0f}",
            *(f"{value:.1f}" for value in v2t),
            f"{val:.1f}",
            f"{mean(row['clips_per_second'] for row in same):.0f}",
            f"{mean(row['waiting_share'] for row in same):.1%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if loading:
        lines += [
            "",
            "Two seeds trained at the same time on one GPU and shared its clips per second; below, each",
            "model had it alone.",
            "",
            "Every video decoded in every epoch (no cache of decoded videos), 12 frames of each:",
            "",
            "| model | pixels | clips/s | waiting |",
            "|---|--:|--:|--:|",
        ]
        lines += [
            f"| {row['model']} | {row['size']} | {row['clips_per_second']:.0f} | {row['waiting_share']:.1%} |"
            for row in loading
        ]
    return "\n".join(
        [*lines, "", "`python studies/small_clip.py` trains, measures and writes this page.", ""]
    )
