"""Our own captioned collections: CSV or JSONL with `path, caption[, start, end, split]`.

One row is one caption; rows with one path (in a table also `file`) are one item. Paths are relative to the
file's folder, times are seconds. A row with an empty caption keeps an item in the gallery that
nobody asks for.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wordreel.atomic import atomic_write
from wordreel.datasets.build import Captions, add, assemble
from wordreel.datasets.text import columns, lines, rows
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

FIELDS = ("path", "caption", "start", "end", "split")
SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": "", ".ndjson": ""}


def is_plain(path: Path) -> bool:
    """Whether the file's name is that of such a collection."""
    return path.suffix.lower() in SUFFIXES


def read(path: Path, split: str | None = None) -> Split:
    """The items of a split, or of the whole file where none is named. An item's id is its path as written."""
    captions: Captions = {}
    splits: set[str] = set()
    for where, row in _entries(path):
        name = _text(row, "path", where).strip()
        belongs = _text(row, "split", where).strip() if row.get("split") is not None else ""
        splits.add(belongs)
        if not name:
            raise DatasetError(f"{where}: no path")
        if split is None or belongs == split:
            add(
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
    here = path.resolve().parent
    paths = {name: str(here / name) for name in captions}
    return assemble(path.stem, split or "all", captions, captions, path, paths)


def write(splits: Iterable[Split], path: Path) -> None:
    """Write splits in this form; media inside the file's folder get relative paths.

    Items whose file is not known are written under their id.
    """
    if not is_plain(path):
        raise DatasetError(f"{path.name}: write to a file that ends in {', '.join(SUFFIXES)}")
    here = path.resolve().parent
    out = io.StringIO()
    delimiter = SUFFIXES[path.suffix.lower()]
    sheet = csv.writer(out, delimiter=delimiter, lineterminator="\n") if delimiter else None
    if sheet:
        sheet.writerow(FIELDS)
    for row in _written(splits, here):
        if sheet:
            sheet.writerow(["" if row[name] is None else row[name] for name in FIELDS])
        else:
            kept = {name: value for name, value in row.items() if value is not None}
            out.write(json.dumps(kept, ensure_ascii=False) + "\n")
    atomic_write(path, out.getvalue().encode("utf-8"))


def _written(splits: Iterable[Split], here: Path) -> Iterator[dict[str, Any]]:
    for split in splits:
        for item in split.items:
            file = Path(item.path or item.id)
            name = file.relative_to(here).as_posix() if file.is_relative_to(here) else file.as_posix()
            tag = None if split.name == "all" else split.name
            if not item.captions:
                yield {"path": name, "caption": "", "start": None, "end": None, "split": tag}
            for caption in item.captions:
                yield {
                    "path": name, "caption": caption.text, "start": caption.start, "end": caption.end,
                    "split": tag,
                }  # fmt: skip


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    delimiter = SUFFIXES.get(path.suffix.lower())
    if delimiter is None:
        raise DatasetError(f"{path.name}: a captioned collection ends in {', '.join(SUFFIXES)}")
    if not delimiter:
        for number, line in lines(path):
            yield f"{path}, line {number}", _object(line, f"{path}, line {number}")
        return
    found = rows(path, _delimiter(path, delimiter), strict=True)
    for number, header in found:
        named = _named(header)
        try:
            columns(path, number, named, [("path",), ("caption",)])
        except DatasetError as error:
            raise DatasetError(f"{error}; the first line must be the header: {','.join(FIELDS)}") from None
        if twice := [name for name in FIELDS if named.count(name) > 1]:
            raise DatasetError(f"{path}, line {number}: two columns are called {twice[0]!r}")
        for last, row in found:
            if len(row) > len(named):
                raise DatasetError(
                    f"{path}, line {last}: {len(row)} fields under {len(named)} columns; put captions with "
                    f"{delimiter!r} in them in double quotes"
                )
            yield f"{path}, line {last}", dict(zip(named, row, strict=False))


def _named(header: list[str]) -> list[str]:
    """The columns in lower case; `file` is another word for `path` where there is none."""
    named = [name.strip().lower() for name in header]
    return named if "path" in named else ["path" if name == "file" else name for name in named]


def _delimiter(path: Path, usual: str) -> str:
    """Spreadsheets of some countries write semicolons; the header tells."""
    _, header = next(iter(lines(path)), (1, ""))
    others = [mark for mark in (";", "\t") if mark in header and usual not in header]
    return others[0] if others else usual


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{where}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise DatasetError(
            f'{where}: each line must be an object: {{"path": "a.mp4", "caption": "a man sings"}}'
        )
    return found


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
