"""The study of the default model as Markdown and plots, made from its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common import DIRECTIONS, T2V, V2T, shown

from wordreel.lab.plots import bar_chart
from wordreel.lab.reports.tables import markdown

COLUMNS = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "median_rank": "MdR"}
Rows = Sequence[Mapping[str, Any]]


def table(entries: Rows, published: Rows) -> str:
    """Markdown of one collection and direction."""
    rows = [
        ["model", "seeds", "post-processing", "β", *COLUMNS.values(), "skewness", "note"],
        *(
            [
                entry["label"],
                str(entry["runs"]),
                entry["postprocessing"] + (f" ({entry['bank']:,})" if entry["bank"] else ""),
                ", ".join(dict.fromkeys(f"{b:g}" for b in entry["beta"] if b is not None)) or "–",
                *(shown(entry, key) for key in COLUMNS),
                f"{entry['skewness']:.2f}",
                entry["note"],
            ]
            for entry in entries
        ),
    ]
    for row in published:
        said = [f"{row['R1']:.1f}", f"{row['R5']:.1f}", f"{row['R10']:.1f}", f"{row['MdR']:.1f}"]
        rows.append([row["model"], "–", row["postprocessing"], "–", *said, "–", "published"])
    return markdown(rows)


def text_of(entries: Rows, published: Rows, titles: Mapping[str, str]) -> str:
    """The whole report."""
    parts = [
        "# The default model\n",
        "Made by `studies/default_model.py`; every number is in `default_model.json`. Mean ± deviation over "
        "seeds. Plain rankings come first; DIS (QB-Norm) uses the bank named, of the size in brackets. "
        "Video to text by the protocol of the published tables: the best of a video's captions among all.\n",
    ]
    for collection, title in titles.items():
        for direction in (T2V, V2T):
            here = [e for e in entries if e["collection"] == collection and e["direction"] == direction]
            if not here:
                continue
            there = [
                row for row in published if (row["collection"], row["direction"]) == (collection, direction)
            ]
            first = here[0]
            parts.append(
                f"## {title}: {DIRECTIONS[direction]}\n\n"
                f"{first['videos']:,} videos, {first['captions']:,} captions"
                + (f"; {first['missing']} videos could not be had" if first["missing"] else "")
                + f".\n\n{table(here, there)}"
            )
            if there:
                sources = "\n".join(
                    f"- {source} (full test, {videos} videos)"
                    for source, videos in dict.fromkeys((row["source"], row["videos"]) for row in there)
                )
                parts.append(
                    f"Published rows, with far stronger experts than can be had here:\n\n{sources}\n"
                )
    return "\n".join(parts)


def plots_of(entries: Rows, published: Rows, titles: Mapping[str, str]) -> dict[str, str]:
    """Bars of R@1, R@5 and R@10, text to video, per collection."""
    made = {}
    for collection, title in titles.items():
        here = [e for e in entries if e["collection"] == collection and e["direction"] == T2V.value]
        here = [e for e in here if not e["postprocessing"].endswith("without labels")]
        there = [row for row in published if (row["collection"], row["direction"]) == (collection, T2V.value)]
        if not here:
            continue
        names = [e["label"] + ("" if e["postprocessing"] == "none" else " + DIS") for e in here]
        names += [
            f"{row['model']} (published)" + ("" if row["postprocessing"] == "none" else " + QB")
            for row in there
        ]
        keys = {"r1": "R1", "r5": "R5", "r10": "R10"}
        values = {
            COLUMNS[ours]: [e["mean"][ours] for e in here] + [row[theirs] for row in there]
            for ours, theirs in keys.items()
        }
        made[collection] = bar_chart(names, values, f"{title}, text to video", "recall (%)")
    return made
