"""The tables of `results/crash`."""

from __future__ import annotations

import json
import platform
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.crash.experiment import KINDS
from tests.crash.run import failures

INTRODUCTION = """# Fault points

Each operation runs on a small library in a process that dies, or whose disk fails, at one fault point: a call
that creates, writes, truncates, flushes, renames or deletes a file, whether Python, SQLite or NumPy makes it,
and for `push` and `pull` also each message to PostgreSQL.
The library is then opened again. It survives if it holds what it held before the operation, after it, or
after one of its steps (files, clips, the bytes of tracks, banks, settings, jobs); `wordreel verify` finds
nothing; embeddings are those of the tracks; searches answer as in that state; and the same command, run
again, finishes. An error must say what to do. After a stopped `push`, a new replica must get what was
published before, or all of what is published after.

- **kill**: the process dies before the call; not tried before a flush, since the next point leaves the same.
  **torn write**: it dies when half of the bytes are written.
- **power cut**: what was not flushed is lost: data and names, data alone, or names alone. Points that leave
  the same disk count once. When the command has ended, nothing that it did may be lost.
- **full disk**: from that call on nothing can grow; of the first write, half fits; tried at calls that need
  space. **read-only disk**: from that call on nothing can be changed. **I/O error**: that call fails, the
  next ones do not. **message lost**, **answer lost**: the connection breaks before the server has a
  message, or before it answers. After an error, the command is run again in the same process.

Written by `make test-crash`, with the harness in `tests/crash`; `crash.json` holds the figures.
All of it was tried on the sources of commit {commit}, in {minutes} minutes of work.
"""


def write_report(results: Sequence[Any], skipped: Sequence[str], commit: str, folder: Path) -> None:
    """Write `crash.json` and `README.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "commit": commit,
        "skipped": list(skipped),
        "operations": list(results),
    }
    (folder / "crash.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(as_markdown(results, skipped, commit), encoding="utf-8")


def as_markdown(results: Sequence[Any], skipped: Sequence[str], commit: str) -> str:
    minutes = round(sum(one["seconds"] for one in results) / 60)
    introduction = INTRODUCTION.format(commit=commit, minutes=minutes)
    parts = [introduction, _totals(results), "## By operation, survived of tried\n", _operations(results)]
    if sampled := [one for one in results if _tried(one) < one["faults"]]:
        texts = [f"{one['operation']} ({_tried(one)} of {one['faults']})" for one in sampled]
        parts.append(
            f"A sample of the faults, evenly spread, was tried of {', '.join(texts)}; all of the others.\n"
        )
    else:
        parts.append("No point is left out.\n")
    if skipped:
        parts.append(f"Not in this run, which had no PostgreSQL: {', '.join(skipped)}.\n")
    if lost := failures(results):
        parts += ["## Not survived\n", "\n".join(f"- {text.splitlines()[0]}" for text in lost) + "\n"]
    return "\n".join(parts)


def _totals(results: Sequence[Any]) -> str:
    head = "| fault | tried | survived | left before | left a step | left after | refused | finished anyway |"
    lines = [head, "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for kind in KINDS:
        some = [one["kinds"][kind] for one in results]
        tried, lost = sum(t["tried"] for t in some), sum(len(t["failures"]) for t in some)
        left = [sum(t["left"].get(state, 0) for t in some) for state in ("before", "between", "after")]
        ends = [sum(t[end] for t in some) or "" for end in ("refused", "finished")]
        lines.append(f"| {kind} | {tried} | {tried - lost} | " + " | ".join(map(str, [*left, *ends])) + " |")
    return "\n".join(lines) + "\n"


def _operations(results: Sequence[Any]) -> str:
    lines = [f"| operation | points | states | {' | '.join(KINDS)} |", "|---|--:|--:|" + "--:|" * len(KINDS)]
    for one in results:
        cells = [_survived(one["kinds"][kind]) for kind in KINDS]
        lines.append(f"| {one['operation']} | {one['points']} | {one['states']} | {' | '.join(cells)} |")
    total = sum(one["points"] for one in results)
    sums = [_survived(_sum([one["kinds"][kind] for one in results])) for kind in KINDS]
    lines.append(f"| **all** | {total} | | {' | '.join(sums)} |")
    return "\n".join(lines) + "\n"


def _tried(operation: Any) -> int:
    return sum(int(tally["tried"]) for tally in operation["kinds"].values())


def _survived(tally: Any) -> str:
    return f"{tally['tried'] - len(tally['failures'])} / {tally['tried']}" if tally["tried"] else "–"


def _sum(tallies: Sequence[Any]) -> Any:
    lost = [text for tally in tallies for text in tally["failures"]]
    return {"tried": sum(tally["tried"] for tally in tallies), "failures": lost}
