"""A report as one page that stands alone: style and pictures inside it, no script, nothing fetched.

The page is `report.html.j2`; this module gathers what it shows. Plain numbers come first, and every number
carries its post-processing label.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.hubness import Direction
from wordreel.hubness.measures import log_edges
from wordreel.lab.evaluate.runs import TOP, EvaluationRun
from wordreel.lab.plots import Series, available, bar_chart, histogram, line_chart, occurrence_chart
from wordreel.lab.reports.report_analysis import GROUP_METRICS, QueryExample, best_and_worst, hubs
from wordreel.lab.reports.tables import TITLES, direction_title, numeric_columns, rows_of
from wordreel.retrieval.metrics import recall_at
from wordreel.types import Int64

SHOTS = 4  # pictures beside an example
CURVE_POINTS = 80
BREAKDOWNS = {  # title and caption
    "length": ("By the length of the query", ""),
    "experts": (
        "By what experts found in the video",
        "Queries for videos an expert has features of, and for the others. Experts with features of all "
        "videos or none are left out.",
    ),
}
FrameLookup = Callable[[int, str | None], str | None]
"""A picture of a video (by column) at the moment some words find, as a data address."""


@dataclass(frozen=True)
class ReportSubject:
    """What the numbers are about, as far as it is known: a bare matrix has neither texts nor names."""

    owner: Int64  # [captions]
    texts: Sequence[str] = ()
    videos: Sequence[str] = ()
    frame_of: FrameLookup | None = None

    def name(self, column: int) -> str:
        return self.videos[column] if self.videos else f"column {column}"

    def text(self, query: int) -> str:
        return self.texts[query] if self.texts else f"row {query}"

    def shot(self, item: int, text: str | None, label: str, **facts: Any) -> dict[str, Any]:
        picture = self.frame_of(item, text) if self.frame_of else None
        return {"name": self.name(item), "picture": picture, "label": label, **facts}


def page(facts: Mapping[str, Any], runs: Sequence[EvaluationRun], subject: ReportSubject) -> str:
    """Return the whole HTML document of a result (`report_files.facts`)."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("wordreel.lab.reports", "."), autoescape=True, undefined=StrictUndefined
    )
    ranked = [run for run in runs if run.ranking is not None]
    best, worst = best_and_worst(ranked[0], subject.owner) if ranked else ([], [])
    drawable = available()
    return environment.get_template("report.html.j2").render(
        facts={**facts, "measured": {"fingerprint": "", **facts["measured"]}},
        chips=_chips(facts["measured"]),
        ranks=[_recall_curve(runs), _rank_histogram(runs)] if drawable else [],
        occurrence=[_occurrence(ranked)] if drawable and ranked else [],
        hubs=_hubs(ranked[0], subject) if ranked else [],
        breakdown=[
            _group_chart(title, note, facts["breakdown"][key], drawable)
            for key, (title, note) in BREAKDOWNS.items()
            if facts["breakdown"].get(key)
        ],
        best=[_example(example, subject, ranked[0]) for example in best],
        worst=[_example(example, subject, ranked[0]) for example in worst],
        pictures=subject.frame_of is not None,
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


def _rank_histogram(runs: Sequence[EvaluationRun]) -> dict[str, Any]:
    """Return the share of queries that got each rank, so that both directions can be compared."""
    edges = log_edges(1, max(2.0, *(float(run.answered.max()) for run in runs)), 28)
    ranks = {run.name: np.floor(run.answered) for run in runs}
    svg = histogram(ranks, edges, "", "rank", "queries (%)", log_x=True, share=True)
    caption = "Bins grow with the rank; the first bar is rank 1 alone."
    return _chart("Ranks of the right answers", svg, caption)


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


def _hubs(plain: EvaluationRun, subject: ReportSubject) -> list[dict[str, Any]]:
    return [
        subject.shot(
            hub.item,
            None,
            f"{hub.times:,} times",
            note=f"{100 * hub.right / hub.times:.0f}% rightly",
            right=False,
        )
        for hub in hubs(plain, subject.owner)
    ]


def _example(example: QueryExample, subject: ReportSubject, run: EvaluationRun) -> dict[str, Any]:
    text = subject.text(example.query)
    wanted = [] if example.right in example.retrieved else [("wanted", example.right)]
    found = [(f"{rank}.", item) for rank, item in enumerate(example.retrieved, start=1)]
    shots = [
        subject.shot(item, text, label, note="", right=item == example.right)
        for label, item in (wanted + found)[:SHOTS]
    ]
    return {
        "text": text,
        "rank": example.rank,
        "gallery": run.items,
        "postprocessing": run.postprocessing,
        "shots": shots,
    }
