"""A report as one page that stands alone: style and pictures inside it, no script, nothing fetched.

The page is `report.html.j2`; this module gathers what it shows. Plain numbers come first, and every number
carries its post-processing label.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordreel.lab.evaluate.runs import TOP, EvaluationRun
from wordreel.lab.plots import available
from wordreel.lab.reports import report_plots
from wordreel.lab.reports.report_analysis import QueryExample, best_and_worst, hubs
from wordreel.lab.reports.tables import TITLES, Rows, direction_title, numeric_columns, rows_of
from wordreel.types import Int64

SHOTS = 4  # pictures beside an example
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
    return environment.get_template("report.html.j2").render(
        facts={**facts, "measured": {"fingerprint": "", **facts["measured"]}},
        chips=_chips(facts["measured"]),
        ranks=_ranks(runs),
        occurrence=_occurrence(ranked) if ranked else None,
        hubs=_hubs(ranked[0], subject) if ranked else [],
        breakdown=_breakdown(facts["breakdown"]),
        best=[_example(example, subject, ranked[0]) for example in best],
        worst=[_example(example, subject, ranked[0]) for example in worst],
        pictures=subject.frame_of is not None,
        charts=available(),
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


def _chart(
    title: str, draw: Callable[[], str], table: Callable[[], Rows], caption: str = ""
) -> dict[str, Any]:
    """A chart, or its table where matplotlib is not installed."""
    if not available():
        return {"title": title, "drawn": "", "rows": table(), "caption": ""}
    drawn = "data:image/svg+xml;base64," + base64.b64encode(draw().encode()).decode()
    return {"title": title, "drawn": drawn, "caption": caption}


def _ranks(runs: Sequence[EvaluationRun]) -> list[dict[str, Any]]:
    return [
        _chart(
            "Recall at K",
            lambda: report_plots.recall_curve(runs),
            lambda: report_plots.recall_rows(runs),
            "Share of queries answered in the first K.",
        ),
        _chart(
            "Ranks of the right answers",
            lambda: report_plots.rank_histogram(runs),
            lambda: report_plots.rank_rows(runs),
            "Bins grow with the rank; the first bar is rank 1 alone.",
        ),
    ]


def _occurrence(ranked: Sequence[EvaluationRun]) -> dict[str, Any]:
    expected = TOP * len(ranked[0].answered) / ranked[0].items
    return _chart(
        f"How often each video is among the first {TOP}",
        lambda: report_plots.occurrence(ranked),
        lambda: report_plots.occurrence_rows(ranked),
        f"If all videos were retrieved equally often, each would be there {expected:.0f} times.",
    )


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


def _breakdown(groups: Mapping[str, Any]) -> list[dict[str, Any]]:
    charts = {
        "length": ("By the length of the query", ""),
        "experts": (
            "By what experts found in the video",
            "Queries for videos an expert has features of, and for the others. Experts with features of all "
            "videos or none are left out.",
        ),
    }
    return [
        _chart(
            title,
            lambda name=name: report_plots.groups(groups[name]),  # type: ignore[misc]
            lambda name=name: report_plots.group_rows(groups[name]),  # type: ignore[misc]
            caption,
        )
        for name, (title, caption) in charts.items()
        if groups.get(name)
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
