"""The study of experts as Markdown and plots, made from its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common import T2V, V2T, shown

from wordreel.lab.plots import bar_chart
from wordreel.lab.reports.tables import markdown

KINDS = {"alone": "alone", "without": "all but one", "cumulative": "cumulative"}
COLUMNS = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "median_rank": "MdR", "mean_rank": "MnR"}


def text_of(results: Sequence[Mapping[str, Any]]) -> str:
    """A table per collection and model."""
    parts = [
        "# What each expert brings\n",
        "Made by `studies/experts.py`; every number is in `experts.json`. Experts are left out when videos "
        "are embedded; nothing is trained again. Plain rankings, text to video; the last columns are video "
        "to text. Behind an expert's name: for how many of the videos it has something to say.\n",
    ]
    for result in results:
        rows = [["experts", *COLUMNS.values(), "change of R@1", "v2t R@1", "v2t R@10"]]
        there = [e for e in result["rows"] if e["direction"] == T2V.value]
        back = [e for e in result["rows"] if e["direction"] == V2T.value]
        whole = there[0]["mean"]["r1"]
        before = 0.0
        for entry, reverse in zip(there, back, strict=True):
            kind, now = entry["kind"], entry["mean"]["r1"]
            change = now - (before if kind == "cumulative" else whole)
            first = kind == "cumulative" and len(entry["experts"]) == 1
            before = now if kind == "cumulative" else 0.0
            rows.append(
                [
                    name_of(entry),
                    *(shown(entry, key) for key in COLUMNS),
                    "–" if kind == "all" or first else f"{change:+.1f}",
                    shown(reverse, "r1"),
                    shown(reverse, "r10"),
                ]
            )
        note = f" ({result['note']})" if result["note"] else ""
        parts.append(f"## {result['title']}: {result['label']}{note}\n\n{markdown(rows)}")
        parts.append(findings(there))
    return "\n".join(parts)


def name_of(entry: Mapping[str, Any]) -> str:
    """`only motion (100 %)`, `all but motion`, `+ motion`.

    >>> name_of({"kind": "alone", "expert": "ocr", "share_of_videos": 0.25})
    'only ocr (25 %)'
    """
    if entry["kind"] == "all":
        return "all"
    name = f"{entry['expert']} ({100 * entry['share_of_videos']:.0f} %)"
    return {"alone": "only ", "without": "all but ", "cumulative": "+ "}[entry["kind"]] + name


def findings(entries: Sequence[Mapping[str, Any]]) -> str:
    """The papers' observations beside ours, from the figures."""
    whole = entries[0]["mean"]["r1"]
    alone = {e["expert"]: e["mean"]["r1"] for e in entries if e["kind"] == "alone"}
    lost = {e["expert"]: whole - e["mean"]["r1"] for e in entries if e["kind"] == "without"}
    best, most = max(alone, key=lambda name: alone[name]), max(lost, key=lambda name: lost[name])
    scarce = [name for name in ("speech", "ocr", "faces") if name in alone]
    lines = [
        f"- MMT finds motion the best single expert. Here: {best} ({alone[best]:.1f}"
        + (f"; motion {alone['motion']:.1f})." if "motion" in alone else ")."),
        f"- MMT and CE find the scarce experts ({', '.join(scarce)}) weak alone. Here: "
        + ", ".join(f"{name} {alone[name]:.1f}" for name in scarce)
        + ".",
        f"- Missed most when left out: {most} ({lost[most]:+.1f} points lost)."
        + (
            f" MMT: sound, weak alone, misses most. Here sound alone {alone['sound']:.1f}, "
            f"{lost['sound']:+.1f} lost without it."
            if "sound" in alone
            else ""
        ),
    ]
    return "\n".join(lines) + "\n"


def plots_of(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Bars per collection, model and kind."""
    made = {}
    for result in results:
        here = [e for e in result["rows"] if e["direction"] == T2V.value]
        for kind, title in KINDS.items():
            shown_here = [
                e for e in here if e["kind"] == kind or (e["kind"] == "all" and kind != "cumulative")
            ]
            slug = "".join(c if c.isalnum() else "_" for c in result["label"].casefold()).strip("_")
            made[f"{result['collection']}_{slug}_{kind}"] = bar_chart(
                [name_of(entry) for entry in shown_here],
                {COLUMNS[key]: [entry["mean"][key] for entry in shown_here] for key in ("r1", "r10")},
                f"{result['title']}, {result['label']}: {title}",
                "recall (%)",
            )
    return made
