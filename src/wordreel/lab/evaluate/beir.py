"""BEIR's texts: `corpus.jsonl` and `queries.jsonl`. Its judgements are read by `qrels`.

A corpus has an object `{"_id", "title", "text"}` a line, queries `{"_id", "text"}`; what else they hold is
not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from wordreel.lab.evaluate.text_lines import atomic_text_file, fault, lines_of


def write_texts(path: Path, texts: Mapping[str, str], titles: Mapping[str, str] | None = None) -> None:
    """Write queries, or, where there are `titles`, a corpus; a title may be missing."""
    with atomic_text_file(path) as file:
        for name, text in texts.items():
            title = {} if titles is None else {"title": titles.get(name, "")}
            file.write(json.dumps({"_id": name, **title, "text": text}, ensure_ascii=False) + "\n")


def read_texts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Id, title (empty for queries) and text of each line of a corpus or of queries."""
    seen: set[str] = set()
    for number, line in lines_of(path):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise fault(path, number, "this is not JSON") from None
        if not isinstance(entry, dict):
            raise fault(path, number, "each line is an object with _id and text")
        name, title, text = entry.get("_id"), entry.get("title") or "", entry.get("text")
        if not isinstance(name, str) or not name or not isinstance(text, str) or not isinstance(title, str):
            raise fault(path, number, "_id, title and text must be strings, and _id not empty")
        if name in seen:
            raise fault(path, number, f"the id {name!r} comes twice")
        seen.add(name)
        yield name, title, text
