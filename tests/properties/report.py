"""The table of `results/properties`, written where `WORDREEL_PROPERTY_RESULTS` names a folder."""

import json
import os
from collections import Counter
from pathlib import Path

COUNTS = ("examples", "twins", "pauses", "kills")  # that are not commands
INTRODUCTION = """# Random commands on a library

A Hypothesis state machine gives two processes random commands on one library and its files: add, remove,
move, change, search, banks, another model, compaction, backups, restarts, a writer that is paused or killed
in the middle. After every command it compares the library with what must be in it, and every search with
that of a new library of the same files (`tests/properties/library_machine.py`). The run ends at the first
that differs.

Written by `make test-properties MINUTES={minutes}`: {steps} steps in {examples} examples, {searches} searches
compared with {twins} libraries built anew, {pauses} writers paused while the other process looked, {kills} of
them killed; {seconds} seconds, of which {cpu} of processor time. Nothing differed.
"""


def write_report(totals: Counter[str], seconds: float) -> None:
    folder = os.environ.get("WORDREEL_PROPERTY_RESULTS")
    if not folder:
        return
    times = os.times()
    commands = {name: count for name, count in totals.most_common() if name not in ("steps", *COUNTS)}
    facts = {
        "minutes": float(os.environ["WORDREEL_PROPERTY_MINUTES"]),
        "seconds": round(seconds),
        "cpu_seconds": round(sum(times[:4])),
        "steps": totals["steps"],
        **{name: totals[name] for name in COUNTS},
        "commands": commands,
    }
    rows = [f"| {name} | {count} |" for name, count in commands.items()]
    text = INTRODUCTION.format(
        **{**facts, "minutes": f"{facts['minutes']:g}"}, searches=totals["search"], cpu=facts["cpu_seconds"]
    )
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / "properties.json").write_text(json.dumps(facts, indent=1) + "\n")
    table = "\n".join(["| command | times |", "|---|--:|", *rows])
    (Path(folder) / "README.md").write_text(f"{text}\n{table}\n")
