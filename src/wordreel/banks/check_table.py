"""A bank's check as a Markdown table."""

from __future__ import annotations

from wordreel.banks.check import BankCheck, BankCheckRow
from wordreel.evaluate import confidence


def markdown(report: BankCheck) -> str:
    """The methods against plain ranking, the same with β chosen without labels, and the confidence."""
    lines = [
        f"Bank `{report.bank}` of {report.bank_size} queries, model {report.model}: {report.queries} "
        f"captions of one half of {report.videos} videos; {report.choosing_queries} captions of the other "
        f"half chose β and method. {report.in_bank} captions that are in the bank were left out. "
        f"Verdict: {report.verdict}.",
        "",
        "| method | β | R@1 | R@5 | R@10 | MdR | skewness | R-sum against plain | 95 % interval | p |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|--:|",
        *(_line("plain" if row.method == "none" else row.method, row) for row in report.rows),
        *(_line(f"{row.method}, β without labels", row) for row in report.unlabelled),
    ]
    if report.confidence is not None:
        lines += ["", "Confidence against similarity, one threshold for all queries (per cent):", ""]
        lines.append(confidence.table(report.confidence).rstrip())
    return "\n".join(lines) + "\n"


def _line(name: str, row: BankCheckRow) -> str:
    beta = f"{row.parameters['beta']:g}" if "beta" in row.parameters else "–"
    figures = f"{row.R1:.1f} | {row.R5:.1f} | {row.R10:.1f} | {row.MdR:g} | {row.skewness:.2f}"
    if row.method == "none":
        return f"| {name} | – | {figures} | – | – | – |"
    interval = f"{row.low:+.1f} to {row.high:+.1f}"
    return f"| {name} | {beta} | {figures} | {row.difference:+.1f} | {interval} | {row.p_value:.3g} |"
