"""A report as one page that stands alone: style and charts inside it, no script, nothing fetched.

The page is `report.html.j2`; this module gathers what it shows. Plain numbers come first, and every number
carries its post-processing label.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wordreel.hubness import Direction
from wordreel.lab.evaluate.runs import TOP, EvaluationRun
from wordreel.lab.plots import Series, available, bar_chart, line_chart, occurrence_chart
from wordreel.lab.reports.tables import GROUP_METRICS, TITLES, direction_title, numeric_columns, rows_of
from wordreel.retrieval.metrics import recall_at

CURVE_POINTS = 80
BREAKDOWNS = {  # title and caption
    "length": ("By the length of the query", ""),
    "experts": (
        "By what experts found in the video",
        "Queries for videos an expert has features of, and for the others. Experts with features of all "
        "videos or none are left out.",
    ),
}


def page(facts: Mapping[str, Any], runs: Sequence[EvaluationRun]) -> str:
    """Return the whole HTML document of a result (`report_files.facts`)."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("wordreel.lab.reports", "."), autoescape=True, undefined=StrictUndefined
    )
    ranked = [run for run in runs if run.ranking is not None]
    drawable = available()
    return environment.get_template("report.html.j2").render(
        facts={**facts, "measured": {"fingerprint": "", **facts["measured"]}},
        chips=_chips(facts["measured"]),
        ranks=[_recall_curve(runs)] if drawable else [],
        occurrence=[_occurrence(ranked)] if drawable and ranked else [],
        breakdown=[
            _group_chart(title, note, facts["breakdown"][key], drawable)
            for key, (title, note) in BREAKDOWNS.items()
            if facts["breakdown"].get(key)
        ],
        charts=drawable,
        top=TOP,
        titles=TITLES,
        direction_title=direction_title,
        numeric_columns=numeric_columns,
        rows_of=rows_of,
    )


def _chips(measured: Mapping[str, Any]) -> list[str]:
    chips = [f"{measured['captions']:,} captions", f"{measured['videos']:,} videos"]
    if measured.get("model"):
        chips.append(f"model {measured['model']}")
    if measured.get("missing"):
        chips.append(f"{measured['missing']} captioned videos are not in the library")
    return chips


def _chart(title: str, svg: str, caption: str) -> dict[str, Any]:
    drawn = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    return {"title": title, "drawn": drawn, "caption": caption}


def _recall_curve(runs: Sequence[EvaluationRun]) -> dict[str, Any]:
    """R@K over K up to the number of videos, with the recall of chance."""
    texts = [run for run in runs if run.direction is Direction.TEXT_TO_VIDEO]
    reach = max(2, texts[0].items if texts else max(len(run.ranks) for run in runs))
    ks = np.unique(np.geomspace(1, reach, CURVE_POINTS).round().astype(np.int64))
    lines = [Series(run.name, ks, [recall_at(run.ranks, int(k)) for k in ks]) for run in runs]
    if texts:
        lines.append(Series(f"chance, text → {runs[0].modality}", ks, 100 * ks / reach, dashed=True))
    svg = line_chart(lines, "", "K", "recall (%)", log_x=True)
    return _chart("Recall at K", svg, "Share of queries answered in the first K.")


def _occurrence(ranked: Sequence[EvaluationRun]) -> dict[str, Any]:
    """Return the k-occurrences of the videos, before and after where there is a normalised run."""
    counts = {run.short_label: counted for run in ranked if (counted := run.occurrences) is not None}
    expected = TOP * len(ranked[0].answered) / ranked[0].items
    return _chart(
        f"How often each video is among the first {TOP}",
        occurrence_chart(counts, min(TOP, ranked[0].items), items="videos"),
        f"If all videos were retrieved equally often, each would be there {expected:.0f} times.",
    )


def _group_chart(
    title: str, caption: str, groups: Sequence[Mapping[str, Any]], drawable: bool
) -> dict[str, Any]:
    """Recall of groups of queries as bars, or as a table where matplotlib is missing."""
    if not drawable:
        rows = [
            [group["name"], str(group["queries"]), *(f"{group[key]:.1f}" for key in GROUP_METRICS)]
            for group in groups
        ]
        head = ["queries", "number", *(TITLES[key] for key in GROUP_METRICS)]
        return {"title": title, "drawn": "", "rows": [head, *rows]}
    names = [f"{group['name']} ({group['queries']:,})" for group in groups]
    values = {TITLES[key]: [group[key] for group in groups] for key in ("R1", "R10")}
    return _chart(title, bar_chart(names, values, "", "recall (%)"), caption)
