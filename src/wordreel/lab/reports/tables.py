"""The metrics of runs as tables: for a terminal, as Markdown, as LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from wordreel.hubness import Direction
from wordreel.lab.evaluate.runs import EvaluationRun
from wordreel.retrieval.metrics import DISPLAYED, NAMES, aggregate, retrieval_metrics
from wordreel.types import Bool, Int64

TITLES = {name: name.replace("R", "R@") if name[1:].isdecimal() else name for name in NAMES} | {
    "Rsum": "R-sum"
}
HEADER = [
    "direction",
    "post-processing",
    "queries",
    "gallery",
    *(TITLES[key] for key in DISPLAYED),
    "skewness",
]
Rows = list[list[str]]
GROUP_METRICS = ("R1", "R5", "R10", "MdR")
LENGTHS = ((1, 4), (5, 6), (7, 8), (9, 11), (12, 16), (17, None))  # words
QueryGroup = dict[str, Any]
"""Some of the queries in a results file: their name, their number and their metrics."""


def entry_of(run: EvaluationRun) -> dict[str, Any]:
    """Return a run as it stands in a results file, under the names of the published tables."""
    return {
        "direction": run.direction.value,
        "protocol": run.protocol or None,
        "modality": run.modality,
        "postprocessing": run.postprocessing,
        "transductive": run.transductive,
        "queries": run.metrics.queries,
        "gallery": run.items,
        "figures": run.metrics.table(),
        "hubness": None if run.hubness is None else asdict(run.hubness),
    }


def spread_of(seeds: Sequence[Sequence[EvaluationRun]]) -> list[dict[str, Any]]:
    """Merge entries of the same runs with several seeds: means, and beside them `deviation`.

    Hubness is left out, since that of an average is not the average.
    """
    entries = []
    for same in zip(*seeds, strict=True):
        spread = aggregate([run.metrics for run in same])
        entries.append(
            {
                **entry_of(same[0]),
                "postprocessing": "; ".join(dict.fromkeys(run.postprocessing for run in same)),
                "figures": spread.mean.table(),
                "deviation": spread.deviation.table(),
                "hubness": None,
            }
        )
    return entries


def rows_of(entries: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the names of the columns, then a row per run, in the order given: plain ones first."""
    return [HEADER, *(_row(entry) for entry in entries)]


def direction_title(entry: Mapping[str, Any]) -> str:
    """Say who asks for what, of an entry; results of earlier versions are of videos.

    >>> direction_title({"direction": "v2t", "protocol": "ce", "modality": "image"})
    'image → text (ce)'
    """
    modality = entry.get("modality", "video")
    if entry["direction"] == Direction.TEXT_TO_VIDEO:
        return f"text → {modality}"
    return f"{modality} → text ({entry['protocol']})"


def _row(entry: Mapping[str, Any]) -> list[str]:
    return [
        direction_title(entry),
        entry["postprocessing"],
        str(entry["queries"]),
        str(entry["gallery"]),
        *(_figure(entry, key) for key in DISPLAYED),
        f"{entry['hubness']['skewness']:.2f}" if entry["hubness"] else "–",
    ]


def _figure(entry: Mapping[str, Any], key: str) -> str:
    apart = f" ± {entry['deviation'][key]:.1f}" if entry.get("deviation") else ""
    return f"{entry['figures'][key]:.1f}{apart}"


def by_length(run: EvaluationRun, texts: Sequence[str]) -> list[QueryGroup]:
    """Return queries by their number of words; only the lengths that occur."""
    words = np.array([len(text.split()) for text in texts])
    groups = []
    for low, high in LENGTHS:
        name = f"{low} words and more" if high is None else f"{low}–{high} words"
        inside = (words >= (low if low > 1 else 0)) & (words <= (high or words.max(initial=0)))
        groups += _group(name, run, inside)
    return groups


def by_expert(run: EvaluationRun, owner: Int64, experts: Mapping[str, Sequence[bool]]) -> list[QueryGroup]:
    """Return queries by whether an expert has features of the video they look for."""
    groups = []
    for expert, present in experts.items():
        has = np.asarray(present, bool)[owner]
        groups += _group(f"{expert}: there", run, has)
        groups += _group(f"{expert}: absent", run, ~has)
    return groups


def _group(name: str, run: EvaluationRun, chosen: Bool) -> list[QueryGroup]:
    ranks = run.ranks[chosen & ~np.isnan(run.ranks)]
    if not len(ranks):
        return []
    return [{"name": name, "queries": len(ranks), **retrieval_metrics(ranks).table(GROUP_METRICS)}]


def plain_text(rows: Rows) -> str:
    """Align columns, words to the left and numbers to the right.

    >>> print(plain_text([["way", "R@1"], ["t2v", "5.0"]]), end="")
    way  R@1
    t2v  5.0
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numeric = numeric_columns(rows)
    lines = [
        "  ".join(
            f"{cell:>{width}}" if number else f"{cell:<{width}}"
            for cell, width, number in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def markdown(rows: Rows) -> str:
    """Return a Markdown table.

    >>> print(markdown([["way", "R@1"], ["t2v", "5.0"]]), end="")
    | way | R@1 |
    |---|--:|
    | t2v | 5.0 |
    """
    bars = "".join("--:|" if number else "---|" for number in numeric_columns(rows))
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + bars, *lines[1:]]) + "\n"


def latex(rows: Rows, comment: str = "") -> str:
    r"""Return a LaTeX `tabular` for the booktabs package; `comment` goes above it.

    >>> print(latex([["way", "R@1"], ["t2v", "5.0"]]), end="")
    \begin{tabular}{lr}
    \toprule
    way & R@1 \\
    \midrule
    t2v & 5.0 \\
    \bottomrule
    \end{tabular}
    """
    columns = "".join("r" if number else "l" for number in numeric_columns(rows))
    lines = [" & ".join(_tex(cell) for cell in row) + r" \\" for row in rows]
    above = "".join(f"% {line}\n" for line in comment.splitlines())
    body = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    return above + "\n".join([*body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def numeric_columns(rows: Rows) -> list[bool]:
    """Return which columns hold numbers below their name."""
    return [all(map(_numeric, column[1:])) for column in zip(*rows, strict=True)]


_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "–": "--",
    "±": r"$\pm$",
    "β": r"$\beta$",
} | {letter: f"\\{letter}" for letter in "&%$#_{}"}


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _numeric(cell: str) -> bool:
    try:
        float(cell.split(" ")[0])
    except ValueError:
        return cell in ("–", "")
    return True
