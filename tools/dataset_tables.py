"""`python -m tools.dataset_tables FILE.md`: write the tables of protocols and files into a page.

The tables go between `<!-- protocols -->` or `<!-- files -->` and the next `<!-- end -->`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets import protocols
from wordreel.lab.datasets.protocols import EvaluationProtocol
from wordreel.lab.datasets.registry import DATASETS


def protocol_table() -> str:
    """One row per protocol, and the notes on each below."""
    loaded = [protocols.load(name) for name in protocols.names()]
    head = "| name | what | dataset, split | items | queries | video to text | R@ |\n" + "|---" * 7 + "|\n"
    notes = "".join(
        f"\n**{p.name}** ({'; '.join(p.papers)})\n\n" + "".join(f"- {note}\n" for note in p.notes)
        for p in loaded
    )
    return head + "".join(map(_row, loaded)) + notes


def file_table() -> str:
    """One row per annotation file."""
    rows = [
        f"| {dataset} | {file.what} | {', '.join(f'`{name}`' for name in file.names)} | {file.without} |\n"
        for dataset, data in DATASETS.items()
        for file in data.files.values()
    ]
    return "| dataset | file | names | without it |\n|---|---|---|---|\n" + "".join(rows)


def fill_tables(page: str) -> str:
    """The page with up-to-date tables.

    >>> "| msvd |" in fill_tables("<!-- protocols -->\\n<!-- end -->\\n<!-- files -->\\n<!-- end -->\\n")
    True
    """
    for mark, table in (("protocols", protocol_table()), ("files", file_table())):
        before, start, rest = page.partition(f"<!-- {mark} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not end:
            raise DatasetError(f"the page has no section <!-- {mark} --> … <!-- end -->")
        page = before + start + table + end + after
    return page


def _row(p: EvaluationProtocol) -> str:
    queries = {
        "all": "every caption",
        "one": "one caption",
        "paragraph": "all captions as one",
        "none": "pictures",
    }
    query = f"{p.captions:,}, {queries[p.rule]}" if p.captions else queries[p.rule]
    items = f"{p.items:,}" if p.items else ""
    return (
        f"| {p.name} | {p.title} | {p.dataset}, {p.split} | {items} | {query} | {p.v2t or 'none'} "
        f"| {', '.join(map(str, p.recall))} |\n"
    )


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(fill_tables(target.read_text(encoding="utf-8")), encoding="utf-8")
