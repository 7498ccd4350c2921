"""Caption tables, wordreel's own format: CSV, TSV or JSONL with `path, caption[, start, end, split]`.

Each row is one caption; rows with the same path are one item (a CSV column may be called `file` instead).
Paths are relative to the table's folder, times are seconds. A row with an empty caption adds an item to the
gallery that no query asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import column_indices, read_lines, read_rows

FIELDS = ("path", "caption", "start", "end", "split")
SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": "", ".ndjson": ""}


def is_caption_table(path: Path) -> bool:
    """Return whether a file's suffix is that of a caption table.

    >>> is_caption_table(Path("captions.tsv")), is_caption_table(Path("captions.txt"))
    (True, False)
    """
    return path.suffix.lower() in SUFFIXES


def read_caption_table(path: Path, split: str | None = None) -> Split:
    r"""Read the items of a split, or of the whole table if `split` is None.

    An item's id is its path as written in the table.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "captions.csv"
    ...     _ = table.write_text("path,caption,split\na.mp4,a man sings,test\nb.mp4,rain,train\n")
    ...     read_caption_table(table, "test").captions
    {'a.mp4': ['a man sings']}
    """
    captions: CaptionsById = {}
    splits: set[str] = set()
    for where, row in _entries(path):
        name = _text(row, "path", where).strip()
        row_split = _text(row, "split", where).strip() if row.get("split") is not None else ""
        splits.add(row_split)
        if not name:
            raise DatasetError(f"{where}: no path")
        if split is None or row_split == split:
            add_caption(
                captions,
                name,
                _text(row, "caption", where),
                where,
                _time(row, "start", where),
                _time(row, "end", where),
            )
    if split is not None and split not in splits:
        have = ", ".join(sorted(filter(None, splits)))
        raise DatasetError(f"{path} has no split {split!r}; it has {have or 'none: leave the split out'}")
    folder = path.resolve().parent
    paths = {name: str(folder / name) for name in captions}
    return build_split(path.stem, split or "all", captions, captions, path, paths)


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    delimiter = SUFFIXES.get(path.suffix.lower())
    if delimiter is None:
        raise DatasetError(f"{path.name}: a caption table ends in {', '.join(SUFFIXES)}")
    if not delimiter:
        for number, line in read_lines(path):
            yield f"{path}, line {number}", _object(line, f"{path}, line {number}")
        return
    rows = read_rows(path, _delimiter(path, delimiter), strict=True)
    for number, header in rows:
        named = _column_names(header)
        try:
            column_indices(path, number, named, [("path",), ("caption",)])
        except DatasetError as error:
            step = NextStep(f"make the first line the header: {','.join(FIELDS)}")
            raise DatasetError(error.message, step) from None
        if twice := [name for name in FIELDS if named.count(name) > 1]:
            raise DatasetError(f"{path}, line {number}: two columns are called {twice[0]!r}")
        for last, row in rows:
            if len(row) > len(named):
                raise DatasetError(
                    f"{path}, line {last}: {len(row)} fields under {len(named)} columns",
                    NextStep(f"put captions that contain {delimiter!r} in double quotes"),
                )
            yield f"{path}, line {last}", dict(zip(named, row, strict=False))


def _column_names(header: list[str]) -> list[str]:
    """Return the columns in lower case; `file` stands for `path` if there is no `path`."""
    named = [name.strip().lower() for name in header]
    return named if "path" in named else ["path" if name == "file" else name for name in named]


def _delimiter(path: Path, usual: str) -> str:
    """Return the delimiter of the header: spreadsheets of some countries write semicolons."""
    _, header = next(iter(read_lines(path)), (1, ""))
    others = [mark for mark in (";", "\t") if mark in header and usual not in header]
    return others[0] if others else usual


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{where}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DatasetError(
            f'{where}: each line must be an object: {{"path": "a.mp4", "caption": "a man sings"}}'
        )
    return value


def _text(row: dict[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise DatasetError(
            f"{where}: {key!r} is {'missing' if value is None else type(value).__name__}, not text"
        )
    return value


def _time(row: dict[str, Any], key: str, where: str) -> object:
    value = row.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise DatasetError(f"{where}: {key} {value!r} is not a number of seconds") from None
