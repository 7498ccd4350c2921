"""Fuzz every target for a share of the time, each in a process of its own, and write what came of it.

    python -m tests.fuzz [--seconds 1200] [--seed 1] [--out results/fuzz] [TARGET …]

Writes `fuzz.json` and `README.md` into `--out`, and the input of each finding into `--findings`. Exits with 1
where there is one: mend it, and store its input under a name that says what it was in
`tests/fuzz/corpus/TARGET/`, from where every run and `make test` start.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.fuzz.engine import input_name, known_inputs
from tests.fuzz.targets import TARGETS

GRACE = 300.0  # seconds beyond its share after which a worker hangs
COLUMNS = (
    "| target | reads | cases | accepted | refused | seconds | lines reached | corpus | findings "
    "| mended before |"
)
ABOUT = """# Fuzzing

Changed inputs at everything that reads what others wrote. Each case ends in success or in one of wordreel's
own errors with a message; anything else is a finding: another exception, more than 20 seconds of processor
time or 256 MiB of memory for one small input, a write outside the target's folder, a connection, a program. A
damaged cache must give the hits that it gave before or be reported, and be whole again after
`wordreel verify --repair`; a damaged track must be reported by `wordreel verify` where it changes the hits.

Inputs that reach new lines of wordreel are changed further. "Mended before" counts the inputs in
`tests/fuzz/corpus/` that were findings once; every run starts from them, and so does `make test`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], metavar="TARGET", help="all by default")
    parser.add_argument("--seconds", type=float, default=600.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/fuzz"))
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    names = given.targets or list(TARGETS)
    given.findings.mkdir(parents=True, exist_ok=True)
    reports = []
    for name in names:
        reports.append(fuzz_one(name, given.seconds / len(names), given.seed, given.findings))
        print(_row(reports[-1]), flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    command = f"python -m tests.fuzz --seconds {given.seconds:g} --seed {given.seed}"
    facts = _with_earlier(given.out / "fuzz.json", command, reports)
    (given.out / "fuzz.json").write_text(json.dumps(facts, indent=1) + "\n")
    (given.out / "README.md").write_text(_page(facts))
    found = [finding for report in reports for finding in report["findings"]]
    for finding in found:
        print(f"{finding['where']}: {finding['what']}", file=sys.stderr)
    sys.exit(1 if found else 0)


def _with_earlier(path: Path, command: str, reports: list[dict[str, Any]]) -> dict[str, Any]:
    """These reports with the cases and seconds of earlier runs, whose findings only count."""
    earlier = json.loads(path.read_text()) if path.is_file() else {"runs": [], "targets": []}
    known = {report["target"]: report for report in earlier["targets"]}
    found = sum(len(report["findings"]) for report in reports)
    total = {key: round(sum(report[key] for report in reports)) for key in ("cases", "seconds")}
    run = {"command": command, "python": platform.python_version(), **total, "findings": found}
    for report in reports:
        before = known.pop(report["target"], {})
        for key in ("cases", "accepted", "refused", "seconds"):
            report[key] = round(report[key] + before.get(key, 0), 1)
        for key in ("lines", "corpus"):
            report[key] = max(report[key], before.get(key, 0))
    return {"runs": [*earlier["runs"], run], "targets": [*reports, *known.values()]}


def fuzz_one(name: str, seconds: float, seed: int, findings: Path) -> dict[str, Any]:
    """The report of a target; a worker that dies is a finding, and another goes on with the next seed."""
    whole: dict[str, Any] = {}
    until = time.monotonic() + seconds
    while not whole or time.monotonic() < until - 1:
        report = _work(name, max(1.0, until - time.monotonic()), seed, findings)
        for key in ("cases", "accepted", "refused", "seconds"):
            report[key] += whole.get(key, 0)
        report["findings"] = whole.get("findings", []) + report["findings"]
        whole, seed = report, seed + 1
    for finding in whole["findings"]:
        data = bytes.fromhex(finding.pop("input"))
        finding["input"] = f"{name}-{input_name(data)}"
        (findings / finding["input"]).write_bytes(data)
    whole["seconds"] = round(whole["seconds"], 1)
    return {**whole, "mended": len(known_inputs(name))}


def _work(name: str, seconds: float, seed: int, findings: Path) -> dict[str, Any]:
    last = findings / f"{name}.last"
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.worker",
        name,
        "--seconds",
        f"{seconds:g}",
        "--seed",
        str(seed),
    ]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--last", str(last)],
            capture_output=True,
            env=environment,
            timeout=seconds + GRACE,
            check=False,
        )
        if done.returncode == 0:
            report: dict[str, Any] = json.loads(done.stdout)
            return report
        what = f"exit {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}"
    except subprocess.TimeoutExpired:
        what = f"still at it {GRACE:g} seconds after its time"
    finding = {
        "where": "process",
        "what": what,
        "input": last.read_bytes().hex() if last.exists() else "",
        "times": 1,
    }
    empty = dict.fromkeys(("cases", "accepted", "refused", "lines", "corpus"), 0)
    about = {"target": name, "what": TARGETS[name].what, "seconds": time.monotonic() - began}
    return {**empty, **about, "findings": [finding]}


def _page(facts: dict[str, Any]) -> str:
    reports = facts["targets"]
    total = {
        key: sum(report[key] for report in reports) for key in ("cases", "accepted", "refused", "seconds")
    }
    total |= {
        "target": "**all**",
        "what": "",
        "lines": "",
        "corpus": "",
        "mended": sum(r["mended"] for r in reports),
    }
    total["findings"] = [finding for report in reports for finding in report["findings"]]
    total["seconds"] = round(total["seconds"], 1)
    rows = [COLUMNS, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|", *map(_row, [*reports, total])]
    runs = [
        f"| `{run['command']}` | {run['python']} | {run['cases']} | {run['seconds']} | {run['findings']} |"
        for run in facts["runs"]
    ]
    head = ["Cases and seconds are those of all runs, findings those of the last one:", ""]
    head += ["| run | Python | cases | seconds | findings |", "|---|---|--:|--:|--:|", *runs]
    return "\n".join([ABOUT, *rows, "", *head]) + "\n"


def _row(report: dict[str, Any]) -> str:
    keys = ("target", "what", "cases", "accepted", "refused", "seconds", "lines", "corpus")
    values = [str(report[key]) for key in keys]
    return f"| {' | '.join([*values, str(len(report['findings'])), str(report['mended'])])} |"


if __name__ == "__main__":
    main()
