"""Read captions to choose from out of a file; what they belong to does not matter.

| file | captions |
|---|---|
| `.json`, `FILE.json:key` | texts, objects with a `caption`, or texts by id: `{"clip1": ["text", …]}` |
| `.jsonl`, `.ndjson` | a text or such an object on each line |
| `.csv`, `.tsv` | the column `caption`, `text` or `sentence` |
| anything else | one on each line |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wordreel.catalogue.banks import normalize_queries
from wordreel.errors import DatasetError
from wordreel.util import json_address
from wordreel.util.text_files import column_indices, pick_cells, read_lines, read_rows

KEYS = ("caption", "text", "sentence")


def read_texts(address: str) -> list[str]:
    """Return the captions of a file in their order, each once."""
    path = Path(address).expanduser()
    ending = path.suffix.lower()
    if json_address.is_json_address(address):
        texts = list(_inside(json_address.read_address(str(path)), address))
    elif ending in (".jsonl", ".ndjson"):
        texts = [text for number, line in read_lines(path) for text in _line(line, f"{path}, line {number}")]
    elif ending in (".csv", ".tsv"):
        texts = list(_column(path, "," if ending == ".csv" else "\t"))
    else:
        texts = [line for _, line in read_lines(path)]
    texts = normalize_queries(texts)
    if not texts:
        raise DatasetError(f"{address} has no captions")
    return texts


def _inside(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for entry in value:
            yield from _inside(entry, where)
    elif isinstance(value, dict) and any(isinstance(value.get(key), str) for key in KEYS):
        yield next(value[key] for key in KEYS if isinstance(value.get(key), str))
    elif isinstance(value, dict) and value and all(isinstance(v, str | list) for v in value.values()):
        for entry in value.values():
            yield from _inside(entry, where)
    else:
        raise DatasetError(
            f'{where} must hold texts: ["a man sings", …] or {{"clip1": ["a man sings", …]}}; '
            "name FILE.json:key if they are inside"
        )


def _line(line: str, where: str) -> Iterator[str]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{where}: not JSON: {error}") from None
    return _inside(value, where)


def _column(path: Path, delimiter: str) -> Iterator[str]:
    table = read_rows(path, delimiter, strict=True)
    for number, header in table:
        wanted = column_indices(path, number, header, [KEYS])
        for last, row in table:
            yield pick_cells(path, last, row, wanted)[0]
