"""`python -m wordreel.datasets.table FILE.md`: write the tables of protocols and files into a page.

They stand between `<!-- protocols -->`, `<!-- files -->` and the next `<!-- end -->`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from wordreel.datasets import protocols
from wordreel.datasets.protocols import Protocol
from wordreel.datasets.registry import DATASETS
from wordreel.errors import DatasetError


def protocol_table() -> str:
    """Every protocol in one row, and its notes below."""
    found = [protocols.load(name) for name in protocols.names()]
    head = "| name | what | dataset, split | items | queries | video to text | R@ |\n" + "|---" * 7 + "|\n"
    notes = "".join(
        f"\n**{p.name}** ({'; '.join(p.papers)})\n\n" + "".join(f"- {note}\n" for note in p.notes)
        for p in found
    )
    return head + "".join(map(_row, found)) + notes


def file_table() -> str:
    """Every file that a reader looks for."""
    rows = [
        f"| {name} | {wanted.what} | {', '.join(f'`{file}`' for file in wanted.names)} | {wanted.without} |\n"
        for name, data in DATASETS.items()
        for wanted in data.files
    ]
    return "| dataset | file | names | without it |\n|---|---|---|---|\n" + "".join(rows)


def filled(page: str) -> str:
    """The page with its tables made anew.

    >>> "| msvd |" in filled("<!-- protocols -->\\n<!-- end -->\\n<!-- files -->\\n<!-- end -->\\n")
    True
    """
    for mark, table in (("protocols", protocol_table()), ("files", file_table())):
        before, start, rest = page.partition(f"<!-- {mark} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not end:
            raise DatasetError(f"the page has no place <!-- {mark} --> … <!-- end -->")
        page = before + start + table + end + after
    return page


def _row(p: Protocol) -> str:
    queries = {
        "all": "every caption",
        "one": "one caption",
        "paragraph": "all captions as one",
        "none": "pictures",
    }
    asked = f"{p.captions:,}, {queries[p.rule]}" if p.captions else queries[p.rule]
    items = f"{p.items:,}" if p.items else ""
    return (
        f"| {p.name} | {p.title} | {p.dataset}, {p.split} | {items} | {asked} | {p.v2t or 'none'} "
        f"| {', '.join(map(str, p.recall))} |\n"
    )


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(filled(target.read_text(encoding="utf-8")), encoding="utf-8")
