"""The charts of a report, each with the rows of the table that stands in where matplotlib is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wordreel.hubness import Direction
from wordreel.lab.evaluate.runs import TOP, EvaluationRun
from wordreel.lab.plots import Series, bar_chart, histogram, line_chart, log_edges, occurrence_chart
from wordreel.lab.reports.tables import Rows
from wordreel.retrieval.metrics import recall_at

POINTS = 80  # of a recall curve
TABLE_KS = (1, 5, 10, 50, 100, 500)


def recall_curve(runs: Sequence[EvaluationRun]) -> str:
    """R@K over K up to the number of videos, with the recall of chance."""
    reach = _largest_k(runs)
    ks = np.unique(np.geomspace(1, reach, POINTS).round().astype(np.int64))
    lines = [Series(run.name, ks, [recall_at(run.ranks, int(k)) for k in ks]) for run in runs]
    if any(run.direction is Direction.TEXT_TO_VIDEO for run in runs):
        lines.append(Series(f"chance, text → {runs[0].modality}", ks, 100 * ks / reach, dashed=True))
    return line_chart(lines, "", "K", "recall (%)", log_x=True)


def recall_rows(runs: Sequence[EvaluationRun]) -> Rows:
    """R@K of each run at a few K."""
    ks = [k for k in TABLE_KS if k <= _largest_k(runs)]
    return [
        ["K", *(run.name for run in runs)],
        *([str(k), *(f"{recall_at(run.ranks, k):.1f}" for run in runs)] for k in ks),
    ]


def rank_histogram(runs: Sequence[EvaluationRun]) -> str:
    """The share of queries that got each rank, so that both directions can be compared."""
    largest = max(float(run.answered.max()) for run in runs)
    return histogram(
        {run.name: np.floor(run.answered) for run in runs},
        log_edges(1, max(2.0, largest), 28),
        "",
        "rank",
        "queries (%)",
        log_x=True,
        share=True,
        legend=True,
    )


def rank_rows(runs: Sequence[EvaluationRun]) -> Rows:
    """Quantiles of the ranks of each run."""
    shares = (10, 25, 50, 75, 90)
    return [
        ["queries", *(run.name for run in runs)],
        *([f"{s}%", *(f"rank ≤ {np.percentile(run.answered, s):.0f}" for run in runs)] for s in shares),
    ]


def occurrence(runs: Sequence[EvaluationRun]) -> str:
    """The k-occurrences of the videos, before and after where there is a normalised run."""
    counts = {run.short_label: counted for run in runs if (counted := run.occurrences) is not None}
    return occurrence_chart(counts, min(TOP, runs[0].items), "", items="videos")


def occurrence_rows(runs: Sequence[EvaluationRun]) -> Rows:
    """Hubness of each run."""
    rows = [["post-processing", "skewness", "largest", "never"]]
    for run in runs:
        hubness = run.hubness
        if hubness is not None:
            never = f"{100 * hubness.antihub_occurrence:.1f}%"
            rows.append([run.postprocessing, f"{hubness.skewness:.2f}", str(hubness.largest), never])
    return rows


def groups(entries: Sequence[Mapping[str, Any]]) -> str:
    """Recall of groups of queries as bars, with the number of queries beside each name."""
    return bar_chart(
        [f"{group['name']} ({group['queries']:,})" for group in entries],
        {"R@1": [group["R1"] for group in entries], "R@10": [group["R10"] for group in entries]},
        "",
        "recall (%)",
    )


def group_rows(entries: Sequence[Mapping[str, Any]]) -> Rows:
    """The metrics of groups of queries."""
    return [
        ["queries", "number", "R@1", "R@5", "R@10", "MdR"],
        *(
            [
                group["name"],
                str(group["queries"]),
                *(f"{group[key]:.1f}" for key in ("R1", "R5", "R10", "MdR")),
            ]
            for group in entries
        ),
    ]


def _largest_k(runs: Sequence[EvaluationRun]) -> int:
    texts = [run for run in runs if run.direction is Direction.TEXT_TO_VIDEO]
    return max(2, texts[0].items if texts else max(len(run.ranks) for run in runs))
