"""A run's figures epoch by epoch: `log.csv`, `log.jsonl`, TensorBoard events, and curves at the end."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
RECALLS = ("r1", "r5", "r10")


def write_logs(folder: Path, history: Sequence[Row]) -> None:
    """Both files anew, each as a whole: after a resumed run they hold every epoch once."""
    columns = list(dict.fromkeys(key for row in history for key in row))
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    _write(folder / "log.csv", table.getvalue())
    lines = "".join(json.dumps(row) + "\n" for row in history)
    _write(folder / "log.jsonl", lines)


def draw_curves(folder: Path, history: Sequence[Row], name: str) -> list[Path]:
    """`loss.svg`, and `recall.svg` where there was something to measure."""
    from wordreel.plots import Series, line_chart

    if not history:
        return []
    epochs = [row["epoch"] for row in history]
    drawn = {"loss": line_chart([Series("loss", epochs, [row["loss"] for row in history])], f"{name}: loss",
                                "epoch", "loss")}  # fmt: skip
    measured = [row for row in history if "t2v_r1" in row]
    if measured:
        at = [row["epoch"] for row in measured]
        lines = [
            Series(f"{way} R@{key[1:]}", at, [row[f"{way}_{key}"] for row in measured], dashed=way == "v2t")
            for way in ("t2v", "v2t")
            for key in RECALLS
        ]
        drawn["recall"] = line_chart(lines, f"{name}: recall on validation", "epoch", "recall in per cent")
    paths = []
    for key, picture in drawn.items():
        paths.append(folder / f"{key}.svg")
        _write(paths[-1], picture)
    return paths


def _write(path: Path, text: str) -> None:
    """As a whole, but without waiting for the disk: the state, which is kept safely, holds every row."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
