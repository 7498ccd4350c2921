"""Tables of a folder of results, from its JSON files: never typed by hand.

The tables stand in the folder's README between two marks; what is outside them is left alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wordreel.errors import EvaluationError, NextStep
from wordreel.lab.reports.report_files import FORMAT
from wordreel.lab.reports.tables import HEADER, markdown, rows_of

BEGIN = "<!-- begin: made by `wordreel results`; do not edit -->"
END = "<!-- end -->"
SHORT = 12  # digits of a hash that are displayed


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Every result of a folder by its name, in order of names; other JSON files are passed over."""
    if not folder.is_dir():
        raise EvaluationError(
            f"there is no folder {folder}", NextStep("write a result", f"evaluate … --out {folder}/NAME")
        )
    results = {}
    for path in sorted(folder.glob("*.json")):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise EvaluationError(f"{path} cannot be read: {error}") from None
        if isinstance(facts, dict) and facts.get("format") == FORMAT:
            results[path.stem] = facts
    if not results:
        raise EvaluationError(
            f"no results in {folder}", NextStep("write a result", f"evaluate … --out {folder}/NAME")
        )
    return results


def tables(folder: Path) -> str:
    """Metrics of all results, then the command and inputs of each, as Markdown."""
    results = read_results(folder)
    metrics = [["result", "model", *HEADER]]
    sources = [["result", "what", "command", "inputs (sha256)"]]
    for name, facts in results.items():
        model = facts["measured"].get("model") or "–"
        metrics += [[name, model, *row] for row in rows_of(facts["runs"])[1:]]
        inputs = dict.fromkeys(f"{entry['name']} `{entry['sha256'][:SHORT]}`" for entry in facts["inputs"])
        apart = "; ".join(facts["measured"]["deviations"])
        what = f"{facts['title']} ({apart})" if apart else facts["title"]
        sources.append([name, what, f"`{facts['command']}`", ", ".join(inputs)])
    return f"{markdown(metrics)}\n{markdown(sources)}"


def replace_tables(text: str, tables: str) -> str:
    r"""Replace what stands between the marks of a text.

    >>> replace_tables(f"a\n{BEGIN}\nold\n{END}\nb", "new\n") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb"
    True
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise EvaluationError(f"the marks are missing: put the lines {BEGIN} and {END} where tables belong")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"
