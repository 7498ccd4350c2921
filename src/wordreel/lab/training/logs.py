"""Logs of a run, a row per epoch: `log.csv` and `log.jsonl`, and curves at the end."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LogRow = dict[str, Any]
RECALLS = ("r1", "r5", "r10")


def write_logs(folder: Path, history: Sequence[LogRow]) -> None:
    """Write `log.csv` and `log.jsonl` as a whole: after a resume they hold every epoch once."""
    columns = list(dict.fromkeys(key for row in history for key in row))
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    _write(folder / "log.csv", table.getvalue())
    lines = "".join(json.dumps(row) + "\n" for row in history)
    _write(folder / "log.jsonl", lines)


def draw_curves(folder: Path, history: Sequence[LogRow], name: str) -> None:
    """Draw `loss.svg`, and `recall.svg` where validation figures exist; nothing without matplotlib."""
    from wordreel.lab.plots import Series, available, line_chart

    if not history or not available():
        return
    epochs = [row["epoch"] for row in history]
    losses = Series("loss", epochs, [row["loss"] for row in history])
    charts = {"loss": line_chart([losses], f"{name}: loss", "epoch", "loss")}
    measured = [row for row in history if "t2v_r1" in row]
    if measured:
        at = [row["epoch"] for row in measured]
        lines = [
            Series(f"{way} R@{key[1:]}", at, [row[f"{way}_{key}"] for row in measured], dashed=way == "v2t")
            for way in ("t2v", "v2t")
            for key in RECALLS
        ]
        charts["recall"] = line_chart(lines, f"{name}: recall on validation", "epoch", "recall in per cent")
    for key, svg in charts.items():
        _write(folder / f"{key}.svg", svg)


def _write(path: Path, text: str) -> None:
    """Replace a file as a whole, without waiting for the disk: the saved state holds every row."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
