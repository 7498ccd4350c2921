"""From the runs to tables and findings; nothing is typed in but what the papers published.

A finding compares two rows by the geometric mean of R@1, R@5 and R@10 over their seeds. It holds ("yes")
where the difference is above its error by more than Student's t allows at 95 %, fails ("no") where it is as
far below, and is "not told apart" between. The error is √(s²/n + t²/m), or that of the differences where both
are of one model, and of the seeds alone: every run has the same test videos.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paper_models.findings import FINDINGS, Finding
from paper_models.rows import ROWS
from wordreel.lab.plots import bar_chart
from wordreel.lab.reports.tables import markdown
from wordreel.retrieval.metrics import RetrievalMetrics, aggregate

HERE = Path(__file__).parent
SHOWN = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "median_rank": "MdR", "mean_rank": "MnR"}
PUBLISHED = {"r1": "R1", "r5": "R5", "r10": "R10", "median_rank": "MdR", "mean_rank": "MnR"}
# 97.5 % quantiles of Student's t by degrees of freedom; above, the last
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23}
LAST = 2.2
MAIN = ("ce", "moee", "mmt")
WAYS = {
    "t2v": "text → video",
    "t2v QB-Norm": "text → video, QB-Norm",
    "v2t": "video → text",
    "v2t QB-Norm": "video → text, QB-Norm",
}
Summary = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    word: str
    difference: float
    error: float


def verdict(a: Sequence[float], b: Sequence[float], paired: bool = False) -> Verdict:
    """Whether `a` is above `b`; `paired` where a[i] and b[i] are of one model."""
    difference = float(np.mean(a) - np.mean(b))
    if len(a) < 2 or len(b) < 2:
        return Verdict("one run only", difference, math.nan)
    if paired:
        error = float(np.std(np.subtract(a, b), ddof=1) / math.sqrt(len(a)))
    else:
        error = math.sqrt(np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b))
    free = len(a) - 1 if paired else len(a) + len(b) - 2
    if abs(difference) <= STUDENT.get(free, LAST) * error:
        return Verdict("not told apart", difference, error)
    return Verdict("yes" if difference > 0 else "no", difference, error)


def report(found: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """What `papers.json` and `README.md` hold."""
    finals = [run for run in found["runs"] if run["stage"] == "final"]
    rows = {row.name: _summary([run for run in finals if run["row"] == row.name]) for row in ROWS}
    held = {name: summary for name, summary in rows.items() if summary is not None}
    findings = [_judged(finding, held) for finding in FINDINGS]
    facts = {
        "data": found["facts"],
        "rows": held,
        "settings": _settings(found["runs"], finals),
        "findings": findings,
    }
    return facts, _text(facts, held, findings)


def _summary(runs: Sequence[Mapping[str, Any]]) -> Summary | None:
    if not runs:
        return None
    made: Summary = {
        "title": runs[0]["title"],
        "parameters": runs[0]["parameters"],
        "seeds": sorted(run["seed"] for run in runs),
        "setting": runs[0]["setting"],
        "best_epochs": [run["best_epoch"] for run in runs],
        "beta": {way: [run["normalised"][way]["beta"] for run in runs] for way in ("t2v", "v2t")},
        "skewness": {
            way: np.mean([run["normalised"][way]["skewness"] for run in runs], axis=0).tolist()
            for way in ("t2v", "v2t")
        },
    }
    for way in ("t2v", "v2t"):
        plain = [RetrievalMetrics(**run["test"][way]) for run in runs]
        after = [_recall(run["normalised"][way]) for run in runs]
        made[way], made[f"{way} QB-Norm"] = _spread(plain), _spread(after)
    return made


def _recall(entry: Mapping[str, Any]) -> RetrievalMetrics:
    f = entry["test"]
    total = f["R1"] + f["R5"] + f["R10"]
    return RetrievalMetrics(
        f["R1"], f["R5"], f["R10"], f["R50"], f["MdR"], f["MnR"], f["Geom"], total, entry["queries"]
    )


def _spread(runs: Sequence[RetrievalMetrics]) -> dict[str, Any]:
    spread = aggregate(runs)
    return {
        "mean": asdict(spread.mean),
        "deviation": asdict(spread.deviation) if len(runs) > 1 else None,
        "each": [run.geometric_mean for run in runs],
    }


def _judged(finding: Finding, held: Mapping[str, Summary]) -> dict[str, Any]:
    """A finding with what our runs say."""
    told: dict[str, Any] = {"paper": finding.paper, "claim": finding.claim, "better": finding.better}
    names = [name for name in finding.worse if name in held]
    if finding.better not in held or not names:
        return {**told, "verdict": "not run"}
    # Of several, the best one is the one to beat.
    worse = max(names, key=lambda name: held[name][finding.worse_way]["mean"]["geometric_mean"])
    a, b = held[finding.better][finding.way], held[worse][finding.worse_way]
    found = verdict(a["each"], b["each"], paired=finding.better == worse)
    return {
        **told,
        "worse": worse,
        "figures": [a["mean"]["geometric_mean"], b["mean"]["geometric_mean"]],
        "R1": [a["mean"]["r1"], b["mean"]["r1"]],
        "difference": found.difference,
        "error": None if math.isnan(found.error) else found.error,
        "verdict": found.word,
    }


def _settings(runs: Sequence[Mapping[str, Any]], finals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What each family's grid tried, by validation score."""
    made: dict[str, Any] = {}
    for run in runs:
        if run["stage"] == "grid":
            score = round(run["val"]["t2v"]["geometric_mean"], 2)
            made.setdefault(run["family"], []).append([score, " ".join(run["setting"]) or "as the recipe"])
    return {family: sorted(tried, reverse=True) for family, tried in made.items()}


def _cell(entry: Mapping[str, Any], key: str) -> str:
    apart = "" if entry["deviation"] is None else f" ± {entry['deviation'][key]:.1f}"
    return f"{entry['mean'][key]:.1f}{apart}"


def _line(summary: Summary, way: str) -> list[str]:
    return [summary["title"], WAYS[way], *(_cell(summary[way], key) for key in SHOWN)]


def _published(entry: Mapping[str, Any]) -> list[str]:
    return [str(entry[key]) if key in entry else "–" for key in PUBLISHED.values()]


def _text(
    facts: Mapping[str, Any], held: Mapping[str, Summary], findings: Sequence[Mapping[str, Any]]
) -> str:
    splits = facts["data"]["splits"]
    head = ["model", "direction", *SHOWN.values()]
    known = json.loads((HERE.parent / "published.json").read_text(encoding="utf-8"))
    wanted = ("VSE++", "Multi. Cues", "CE")
    theirs = [
        [f"{entry['model']} (published)", "text → video", *_published(entry)]
        for entry in known
        if entry["collection"] == "msvd-test" and entry["direction"] == "t2v" and entry["model"] in wanted
    ]
    main = [_line(held[name], way) for name in MAIN if name in held for way in WAYS]
    test, train = splits["test"], splits["train"]
    parts = [
        "# The papers' models on our own experts",
        f"Trained on {train['videos']} of MSVD's 1,200 training videos ({train['captions']} captions), the "
        f"epoch and β chosen on {splits['val']['videos']} of 100, measured once on {test['videos']} of 670 "
        f"test videos with all {test['captions']} captions. Mean ± standard deviation over seeds. "
        f"{_made(facts['data'], held)}",
        "![R@1, plain and with QB-Norm](rows.svg)",
        "## Beside the published figures",
        markdown([head, *theirs, *main]),
        _apart(facts["data"]),
        "## All rows, text to video",
        markdown([["model", *SHOWN.values(), "QB-Norm R@1", "seeds", "parameters"], *_all(held)]),
        "## Beside the papers' ablations",
        _beside(held),
        "## Which findings hold here",
        markdown([["finding", "paper", "compared", "difference", "holds"], *map(_said, findings)]),
        "Differences are of the geometric mean of R@1, R@5 and R@10 in points, ± the standard error over "
        "seeds. “yes” and “no” are beyond what chance gives once in twenty (Student's t over the seeds; all "
        "runs have the same test videos, so it says nothing about other videos).",
    ]
    if facts["settings"]:
        tried = [
            [family, f"{score:.2f}", f"`{setting}`"]
            for family, entries in facts["settings"].items()
            for score, setting in entries
        ]
        parts += [
            "## Settings that were tried",
            "One seed each; the best on the validation captions was used for all rows of its family.",
            markdown([["family", "validation", "setting"], *tried]),
        ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def plot(held: Mapping[str, Summary]) -> str:
    """R@1 of every row as bars."""
    return bar_chart(
        [summary["title"] for summary in held.values()],
        {
            name: [summary[way]["mean"]["r1"] for summary in held.values()]
            for name, way in (("plain", "t2v"), ("QB-Norm", "t2v QB-Norm"))
        },
        "The papers' models on our experts, MSVD test",
        "text → video R@1 (%)",
    )


def _made(data: Mapping[str, Any], held: Mapping[str, Summary]) -> str:
    seeds = max((len(summary["seeds"]) for summary in held.values()), default=0)
    return (
        f"Made by `studies/papers.py` (see `studies/README.md`) with up to {seeds} seeds on "
        f"{data['device']}, torch {data['torch']}."
    )


def _apart(data: Mapping[str, Any]) -> str:
    """In what our runs differ from the published ones."""
    test = data["splits"]["test"]
    return (
        "Not the same features. Published (CE): ResNeXt-101, SENet-154, I3D, R(2+1)D-34, DenseNet-161 scenes,"
        " faces and characters, words by GPT. Ours: EfficientNet-Lite2, I3D (RGB), YuNet and SFace faces "
        f"({test['with'].get('faces', 0)} test videos have any), words on screen "
        f"({test['with'].get('ocr', 0)} have any), captions by MiniLM; no network for scenes, and MSVD has "
        f"no sound. Published figures are of 670 test videos; ours of {test['videos']}, which is slightly "
        f"easier. Features in these runs: {data['features']}; encoder: {data['encoder']}. QB-Norm is dynamic "
        "inverted softmax with the training captions as the bank (video to text: the training videos)."
    )


def _all(held: Mapping[str, Summary]) -> list[list[str]]:
    return [
        [
            summary["title"],
            *(_cell(summary["t2v"], key) for key in SHOWN),
            _cell(summary["t2v QB-Norm"], "r1"),
            str(len(summary["seeds"])),
            f"{summary['parameters']:,}",
        ]
        for summary in held.values()
    ]


def _beside(held: Mapping[str, Summary]) -> str:
    known = json.loads((HERE / "ablations.json").read_text(encoding="utf-8"))
    made = []
    for paper in ("ce", "mmt"):
        rows = [["model", "R@1", "R@5", "R@10", "MdR", "published R@1", "R@5", "R@10", "MdR"]]
        keys = ("r1", "r5", "r10", "median_rank")
        for name, entry in known[paper].items():
            if name in held:
                ours = [_cell(held[name]["t2v"], key) for key in keys]
                rows.append([held[name]["title"], *ours, *(str(entry.get(PUBLISHED[k], "–")) for k in keys)])
        if len(rows) > 1:
            made.append(f"Published: {known['sources'][paper]}.\n\n{markdown(rows)}")
    return "\n".join(made)


def _said(finding: Mapping[str, Any]) -> list[str]:
    if finding["verdict"] == "not run":
        return [finding["claim"], finding["paper"], "–", "–", "not run"]
    error = "" if finding["error"] is None else f" ± {finding['error']:.1f}"
    pair = f"{finding['figures'][0]:.1f} against {finding['figures'][1]:.1f} ({finding['worse']})"
    return [
        finding["claim"],
        finding["paper"],
        pair,
        f"{finding['difference']:+.1f}{error}",
        finding["verdict"],
    ]
