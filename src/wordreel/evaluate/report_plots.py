"""The pictures of a report, made from its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wordreel.evaluate.metrics import recall_at
from wordreel.evaluate.runs import TOP, EvaluationRun
from wordreel.hubness import Direction
from wordreel.plots import Series, bar_chart, histogram, line_chart, occurrence_chart
from wordreel.plots.histogram import log_edges

POINTS = 80  # of a recall curve


def recall_curve(runs: Sequence[EvaluationRun]) -> str:
    """R@K over K up to the number of videos, with what chance would find."""
    texts = [run for run in runs if run.direction is Direction.TEXT_TO_VIDEO]
    reach = max(2, texts[0].items if texts else max(len(run.ranks) for run in runs))
    ks = np.unique(np.geomspace(1, reach, POINTS).round().astype(np.int64))
    lines = [Series(run.name, ks, [recall_at(run.ranks, int(k)) for k in ks]) for run in runs]
    if texts:
        lines.append(Series("chance, text → video", ks, 100 * ks / reach, dashed=True))
    return line_chart(lines, "Recall at K", "K", "recall (%)", log_x=True, standalone=False)


def rank_histogram(runs: Sequence[EvaluationRun]) -> str:
    """How many queries got which rank; the share of queries, so that both directions can be seen together."""
    largest = max(float(run.answered.max()) for run in runs)
    return histogram(
        {run.name: np.floor(run.answered) for run in runs},
        log_edges(1, max(2.0, largest), 28),
        "Ranks of the right answers",
        "rank",
        "queries (%)",
        log_x=True,
        share=True,
        legend=True,
        standalone=False,
    )


def occurrence(runs: Sequence[EvaluationRun]) -> str:
    """The k-occurrences of the videos, before and after where there is a normalised run."""
    names = ["before", "after"] if len(runs) == 2 else [run.postprocessing for run in runs]
    counts = {
        name if len(runs) > 1 else "plain": held
        for name, run in zip(names, runs, strict=True)
        if (held := run.occurrences) is not None
    }
    return occurrence_chart(counts, min(TOP, runs[0].items), items="videos", standalone=False)


def groups(listed: Sequence[Mapping[str, Any]], title: str) -> str:
    """Recall of groups of queries as bars, with the number of queries beside each name."""
    return bar_chart(
        [f"{group['name']} ({group['queries']:,})" for group in listed],
        {"R@1": [group["R1"] for group in listed], "R@10": [group["R10"] for group in listed]},
        title,
        "recall (%)",
        standalone=False,
    )
