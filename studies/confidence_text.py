"""The study of confidence as Markdown and reliability diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from strangers import TITLES

from wordreel.lab.plots import Series, line_chart
from wordreel.lab.reports.tables import markdown

Rows = Sequence[Mapping[str, Any]]


def text_of(figures: Mapping[str, Any]) -> str:
    """The strangers, the false alarms and the constants."""
    rows: Rows = figures["rows"]
    judged = [
        ["model", "collection", "videos", "captions", "top hit right", "mean confidence"],
    ]
    judged[0] += ["calibration error", "AUROC", "AUROC of the similarity"]
    alarms = [["model", "collection", "videos", "all ≥ 50 %", "all ≥ 30 %", "made ≥ 50 %", "made ≥ 30 %"]]
    alarms[0] += ["far captions ≥ 50 %", "far captions ≥ 30 %", "“quarterly tax report”"]
    for row in rows:
        place = [row["model"], TITLES[row["collection"]]]
        place.append(str(row["videos"]))
        shares = [row[key] for key in ("top_right", "mean_confidence", "calibration_error")]
        areas = [f"{row[key]:.3f}" for key in ("auroc", "auroc_similarity")]
        judged.append([*place, str(row["queries"]), *map(_percent, shares), *areas])
        kinds = ("false_alarms", "false_alarms_made", "false_alarms_far")
        alarms.append([*place, *(_percent(row[k][cut]) for k in kinds for cut in ("0.5", "0.3"))])
        alarms[-1].append(_percent(row["example"]))
    constants = [["model", *next(iter(figures["constants"].values()))]]
    constants += [[name, *(f"{v:g}" for v in each.values())] for name, each in figures["constants"].items()]
    return "\n".join(
        [
            "# How sure a hit is, judged on strangers\n",
            "Made by `studies/confidence.py`; every number is in `confidence.json`. Each collection is "
            "judged by the calibration that the others fitted, with the bank of everyday queries. A top hit "
            "is right if it is the caption's own video, so that a video that fits as well counts as wrong. "
            "Calibration error: ten bins of equally many hits, per cent.\n",
            markdown(judged),
            "## Queries without an answer\n",
            "Share of 500 queries whose top hit is at least as sure as stated: 250 made from lists of "
            "documents, ideas, science and software, and 250 captions of other collections, the farthest "
            "from this one's.\n",
            markdown(alarms),
            "## Constants\n",
            "Fitted on all collections that the model was not trained on.\n",
            markdown(constants),
            "## Reliability of the whole galleries\n",
            *(f"![{name}]({_file(name)}.svg)" for name in dict.fromkeys(row["model"] for row in rows)),
        ]
    )


def plots_of(rows: Rows) -> dict[str, str]:
    """One reliability diagram per model: share of right hits over confidence, ten bins of each collection."""
    plots = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        whole: dict[str, Mapping[str, Any]] = {}
        for row in rows:
            if row["model"] == model:
                whole.setdefault(row["collection"], row)
        lines = [
            Series(TITLES[name], [x for x, _ in row["reliability"]], [y for _, y in row["reliability"]])
            for name, row in whole.items()
        ]
        most = max(x for line in lines for x in (*line.x, *line.y))
        ideal = Series("as sure as right", [0.0, most], [0.0, most], dashed=True)
        title = f"{model}: reliability on collections left out of the fit"
        plots[_file(model)] = line_chart(
            [*lines, ideal], title, "confidence", "share of top hits that are right"
        )
    return plots


def _file(model: str) -> str:
    return "reliability_" + "".join(c if c.isalnum() else "_" for c in model)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
