"""The query-bank study as Markdown and plots, made from its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from common import DIRECTIONS, shown
from query_bank_claims import judge

from wordreel.lab.plots import Series, line_chart
from wordreel.lab.reports.tables import markdown

FIGURES = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "median_rank": "MdR"}
NAMES = {"dis": "DIS", "is": "IS", "csls": "CSLS", "nnn": "NNN", "gc": "GC", "cent": "CENT", "none": "none"}
Rows = Sequence[Mapping[str, Any]]


def text_of(figures: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """The verdicts first, then the tables."""
    betas = figures["beta_by_validation"]
    chosen = "; ".join(
        f"{DIRECTIONS[way]} {NAMES[name]} {', '.join(f'{each[way][name]:g}' for each in betas)}"
        for way in betas[0]
        for name in betas[0][way]
    )
    parts = [
        "# Query banks on our own embeddings\n",
        "Made by `studies/query_bank.py`; every number is in `query_bank.json`. Banks are captions (video to "
        "text: videos) that are not asked for; the first one named is of the same domain. β was chosen on "
        f"the MSVD validation captions ({chosen}); the curves over β and k and the comparison of methods use "
        f"{figures['curves_with']:,} queries of a bank at most. ± over seeds and draws. p: paired "
        "permutation test of R@1, captions of one video together, first weights. The captions of all banks "
        "but the everyday queries were trained on.\n",
        "## The papers' claims\n",
    ]
    for place, verdicts in _verdicts(figures, titles).items():
        rows = [["claim", "verdict", "figures"]]
        rows += [[claim, verdict, said] for claim, (verdict, said) in verdicts.items()]
        parts.append(f"### {place}\n\n{markdown(rows)}")
    for collection, title in titles.items():
        for way, name in DIRECTIONS.items():
            here = _of(figures["rows"], collection, way)
            if here:
                parts.append(f"## {title}: {name}\n\n{_main(here)}\n{_curves(here)}")
    return "\n".join(parts)


def _verdicts(figures: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, dict[str, tuple[str, str]]]:
    found = {
        f"{title}, {name}": judge(figures, collection, way)
        for collection, title in titles.items()
        for way, name in DIRECTIONS.items()
    }
    return {place: verdicts for place, verdicts in found.items() if verdicts}


def _of(rows: Rows, collection: str, way: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if (row["collection"], row["direction"]) == (collection, way)]


def _main(rows: Rows) -> str:
    """Plain, every whole bank, and every method with a part of it."""
    table = [["bank", "queries", "method", *FIGURES.values(), "skewness", "most retrieved", "corrected (%)"]]
    whole = {(row["bank"], row["method"], row["x"]) for row in rows if row["section"] == "all"}
    for row in rows:
        again = row["section"] == "method" and (row["bank"], row["method"], row["x"]) in whole
        if row["section"] in ("plain", "all", "method") and not again:
            share = f"{100 * row['corrected']:.0f}" if "corrected" in row else "–"
            table.append(
                [
                    row["bank"] or "none",
                    f"{row['x']:,.0f}",
                    NAMES[row["method"]],
                    *(shown(row, key) for key in FIGURES),
                    f"{row['skewness']:.2f}",
                    f"{row['largest']:.0f}",
                    share,
                ]
            )
    return markdown(table)


def _curves(rows: Rows) -> str:
    """R@1 over size, β and k."""
    parts = []
    for section, title in (
        ("size", "R@1 by bank size"),
        ("beta", "R@1 by β"),
        ("k", "R@1 by k of the activation set"),
    ):
        here = [row for row in rows if row["section"] == section]
        xs = sorted({row["x"] for row in here})
        table = [["bank", "method", *(f"{x:,.0f}" for x in xs)]]
        for bank, method in dict.fromkeys((row["bank"], row["method"]) for row in here):
            by = {row["x"]: row for row in here if (row["bank"], row["method"]) == (bank, method)}
            table.append([bank, NAMES[method], *(shown(by[x], "r1") if x in by else "–" for x in xs)])
        parts.append(f"{title}:\n\n{markdown(table)}")
    return "\n".join(parts)


def plots_of(rows: Rows, titles: Mapping[str, str]) -> dict[str, str]:
    """A line chart of R@1 per collection, direction and curve; plain ranking is dashed."""
    made = {}
    for collection, title in titles.items():
        for way, name in DIRECTIONS.items():
            here = _of(rows, collection, way)
            for section, label in (("size", "bank queries"), ("beta", "β"), ("k", "k of the activation set")):
                lines = _lines(here, section)
                if lines:
                    made[f"{collection}_{way}_{section}"] = line_chart(
                        lines,
                        f"{title}, {name}: R@1 by {label}",
                        label,
                        "R@1 (%)",
                        log_x=section != "k",
                        zero=False,
                    )
    return made


def _lines(rows: Rows, section: str) -> list[Series]:
    here = [row for row in rows if row["section"] == section]
    if not here:
        return []
    lines = []
    for bank, method in dict.fromkeys((row["bank"], row["method"]) for row in here):
        held = sorted(
            (row for row in here if (row["bank"], row["method"]) == (bank, method)), key=lambda r: r["x"]
        )
        y = np.array([row["mean"]["r1"] for row in held])
        apart = np.array([row.get("deviation", {}).get("r1", 0.0) for row in held])
        x = [row["x"] for row in held]
        lines.append(Series(f"{NAMES[method]}, {bank}", x, y, y - apart, y + apart))
    xs = sorted({row["x"] for row in here})
    level = next(row for row in rows if row["section"] == "plain")["mean"]["r1"]
    return [*lines, Series("plain", xs, [level] * len(xs), dashed=True)]
