"""A report as one page that stands alone: style and pictures inside it, no script, nothing fetched.

Plain numbers come first, and every number carries its post-processing label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from wordreel.lab.evaluate.runs import TOP, EvaluationRun
from wordreel.lab.plots import STYLE as PLOT_STYLE
from wordreel.lab.plots import available, escape
from wordreel.lab.reports import report_plots
from wordreel.lab.reports.report_analysis import QueryExample, best_and_worst, hubs
from wordreel.lab.reports.report_style import STYLE
from wordreel.lab.reports.tables import TITLES, Rows, direction_title, numeric_columns, rows_of
from wordreel.types import Int64

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
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


def page(facts: Mapping[str, Any], runs: Sequence[EvaluationRun], subject: ReportSubject) -> str:
    """The whole HTML document of a result (`report_files.facts`)."""
    body = [
        _top(facts),
        _headline(facts),
        _section("Figures", _card(_table_of(rows_of(facts["runs"]))), _ties()),
        _provenance(facts),
        _curves(runs),
        _hubness(runs, subject),
        _breakdown(facts["breakdown"]),
        _examples(runs, subject),
        f"<footer>Written by wordreel {escape(facts['versions']['wordreel'])}. "
        f"This page is complete in itself and asks nothing of the network.{_no_plots()}</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(facts['title'])}</title><style>{STYLE}{PLOT_STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _no_plots() -> str:
    """How to get charts, where there are none."""
    return (
        "" if available() else " For charts, install matplotlib: <code>pip install 'wordreel[plots]'</code>."
    )


def _section(title: str, *inside: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(inside)}</section>" if any(inside) else ""


def _card(*inside: str) -> str:
    return f'<div class="card">{"".join(inside)}</div>'


def _top(facts: Mapping[str, Any]) -> str:
    measured = facts["measured"]
    chips = [f"{measured['captions']:,} captions", f"{measured['videos']:,} videos"]
    if measured.get("model"):
        chips.append(f"model {measured['model']}")
    if measured.get("missing"):
        chips.append(f"{measured['missing']} captioned videos are not in the library")
    return (
        f"<h1>{escape(facts['title'])}</h1><p>"
        + "".join(f'<span class="chip">{escape(chip)}</span>' for chip in chips)
        + "</p>"
    )


def _headline(facts: Mapping[str, Any]) -> str:
    cards = []
    for entry in facts["runs"]:
        direction = direction_title(entry).capitalize()
        numbers = "".join(
            f"<div><b>{entry['figures'][key]:.1f}</b><span>{TITLES[key]}</span></div>"
            for key in ("R1", "R5", "R10", "MdR")
        )
        label = f'<span class="chip">post-processing: {escape(entry["postprocessing"])}</span>'
        cards.append(_card(f"<h3>{escape(direction)}</h3>{label}", f'<div class="numbers">{numbers}</div>'))
    return f'<section class="headline" aria-label="Headline figures">{"".join(cards)}</section>'


def _table_of(rows: Rows) -> str:
    aligned = [' class="n"' if number else "" for number in numeric_columns(rows)]
    cells = [
        "<tr>"
        + "".join(f"<{tag}{how}>{escape(cell)}</{tag}>" for cell, how in zip(row, aligned, strict=True))
        + "</tr>"
        for row, tag in zip(rows, ["th"] + ["td"] * len(rows), strict=False)
    ]
    return (
        f'<div class="scroll"><table><thead>{cells[0]}</thead>'
        f"<tbody>{''.join(cells[1:])}</tbody></table></div>"
    )


def _ties() -> str:
    return (
        '<p class="soft note">Recall in per cent; ranks count from 1, and equal scores share the mean of '
        f"their ranks. Skewness is that of the {TOP}-occurrences: large where a few videos are retrieved for "
        "everything.</p>"
    )


def _provenance(facts: Mapping[str, Any]) -> str:
    measured = facts["measured"]
    pairs: list[tuple[str, str]] = [("command", f"<code>{escape(facts['command'])}</code>")]
    pairs += [
        (entry["what"], f"{escape(entry['name'])} <code>sha256 {escape(entry['sha256'])}</code>")
        for entry in facts["inputs"]
    ]
    if measured.get("fingerprint"):
        pairs.append(("model", f"{escape(measured['model'])} <code>{escape(measured['fingerprint'])}</code>"))
    pairs.append(("gallery", f"<code>sha256 {escape(measured['gallery_sha256'])}</code>"))
    labels = "; ".join(dict.fromkeys(entry["postprocessing"] for entry in facts["runs"]))
    pairs.append(("post-processing", escape(labels)))
    if measured["deviations"]:
        pairs.append(("apart from the protocol", escape("; ".join(measured["deviations"]))))
    pairs.append(("seeds", escape(", ".join(map(str, facts["seeds"])) or "none stated")))
    pairs.append(("versions", escape(", ".join(f"{name} {v}" for name, v in facts["versions"].items()))))
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in pairs)
    return _section("What was measured", _card(f"<dl>{listed}</dl>"))


def _figure(title: str, draw: Callable[[], str], table: Callable[[], Rows], caption: str = "") -> str:
    """A chart, or its table where matplotlib is not installed."""
    note = f"<figcaption>{escape(caption)}</figcaption>" if caption and available() else ""
    inside = draw() if available() else _table_of(table())
    return _card(f"<figure><h3>{escape(title)}</h3>{inside}{note}</figure>")


def _curves(runs: Sequence[EvaluationRun]) -> str:
    curve = _figure(
        "Recall at K",
        partial(report_plots.recall_curve, runs),
        partial(report_plots.recall_rows, runs),
        "Share of queries answered in the first K.",
    )
    ranks = _figure(
        "Ranks of the right answers",
        partial(report_plots.rank_histogram, runs),
        partial(report_plots.rank_rows, runs),
        "Bins grow with the rank; the first bar is rank 1 alone.",
    )
    return _section("Ranks", f'<div class="two">{curve}{ranks}</div>')


def _hubness(runs: Sequence[EvaluationRun], subject: ReportSubject) -> str:
    ranked = [run for run in runs if run.ranking is not None]
    if not ranked:
        return ""
    plain = ranked[0]
    expected = TOP * len(plain.answered) / plain.items
    drawing = _figure(
        f"How often each video is among the first {TOP}",
        partial(report_plots.occurrence, ranked),
        partial(report_plots.occurrence_rows, ranked),
        f"If all videos were retrieved equally often, each would be there {expected:.0f} times.",
    )
    shots = []
    for hub in hubs(plain, subject.owner):
        share = f"{100 * hub.right / hub.times:.0f}% rightly"
        shots.append(_shot(subject, hub.item, None, f"{hub.times:,} times", share))
    listed = _card(
        "<h3>The largest hubs</h3>",
        f'<p class="soft note">Most often among the first {TOP}; rightly is for its own captions.</p>',
        f'<div class="shots hubs">{"".join(shots)}</div>',
    )
    return _section("Hubness", f'<div class="two">{drawing}{listed}</div>')


def _breakdown(groups: Mapping[str, Any]) -> str:
    cards = []
    if groups.get("length"):
        cards.append(
            _figure(
                "By the length of the query",
                partial(report_plots.groups, groups["length"], "By length"),
                partial(report_plots.group_rows, groups["length"]),
            )
        )
    if groups.get("experts"):
        cards.append(
            _figure(
                "By what experts found in the video",
                partial(report_plots.groups, groups["experts"], "By expert"),
                partial(report_plots.group_rows, groups["experts"]),
                "Queries for videos an expert has features of, and for the others. Experts with features of "
                "all videos or none are left out.",
            )
        )
    return _section(
        "Where it is strong and weak", f'<div class="two">{"".join(cards)}</div>' if cards else ""
    )


def _examples(runs: Sequence[EvaluationRun], subject: ReportSubject) -> str:
    plain = next((run for run in runs if run.ranking is not None), None)
    if plain is None:
        return ""
    best, worst = best_and_worst(plain, subject.owner)
    return _section(
        "Best queries",
        f'<div class="two">{"".join(_example(e, subject, plain) for e in best)}</div>' if best else "",
    ) + _section(
        "Worst queries",
        f'<div class="two">{"".join(_example(e, subject, plain) for e in worst)}</div>' if worst else "",
    )


def _example(example: QueryExample, subject: ReportSubject, run: EvaluationRun) -> str:
    text = subject.text(example.query)
    first = example.rank == 1
    shots = []
    if example.right not in example.retrieved:
        shots.append(_shot(subject, example.right, text, "wanted", "", right=True))
    shots += [
        _shot(subject, item, text, f"{rank}.", "", right=item == example.right)
        for rank, item in enumerate(example.retrieved[: SHOTS - len(shots)], start=1)
    ]
    where = f'<span class="{"first" if first else "last"}">rank {example.rank:g}</span> of {run.items:,}'
    return _card(
        f'<div class="query">{escape(text)}</div>',
        f'<div class="soft">{where} · post-processing: {escape(run.postprocessing)}</div>',
        f'<div class="shots">{"".join(shots)}</div>',
    )


def _shot(
    subject: ReportSubject, item: int, text: str | None, label: str, note: str, right: bool = False
) -> str:
    name = subject.name(item)
    address = subject.frame_of(item, text) if subject.frame_of else None
    if address:
        picture = f'<img src="{escape(address)}" alt="{escape(name)}">'
    else:
        picture = '<span class="away">no picture</span>' if subject.frame_of else ""
    after = f"<br>{escape(note)}" if note else ""
    return (
        f'<div class="shot{" right" if right else ""}">{picture}<b>{escape(label)}</b>{after}'
        f'<span class="name" title="{escape(name)}">{escape(name)}</span></div>'
    )
