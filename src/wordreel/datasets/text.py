"""Text files of strangers, streamed: any line ending, a byte order mark, stray Windows bytes, long lines."""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from wordreel.errors import DatasetError

MAX_LINE = 16 * 2**20  # characters; longer lines are not annotations
MAX_JSON = 2 * 2**30  # bytes; a JSON file is read as a whole
FALLBACK = "wordreel-cp1252"


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no UTF-8 are what old annotation files have: Windows or Latin-1 letters."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw = error.object[error.start : error.end]
    return "".join(map(_letter, raw)), error.end


def _letter(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


codecs.register_error(FALLBACK, _as_windows)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1, without their ending.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "list.txt"
    ...     _ = path.write_bytes(bytes.fromhex("efbbbf") + b"video1\\r\\n\\r\\ncaf" + bytes.fromhex("e9"))
    ...     list(lines(path))
    [(1, 'video1'), (3, 'café')]
    """
    with opened(path) as file:
        for number, line in _numbered(path, file):
            text = line.rstrip("\n")
            if text.strip():
                yield number, text


def rows(path: Path, delimiter: str = ",", strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, with the number of the line where each ends."""
    with opened(path, newline="") as file:
        reader = csv.reader(
            (line for _, line in _numbered(path, file)),
            delimiter=delimiter,
            strict=strict,
            skipinitialspace=strict and delimiter == ",",
        )
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield reader.line_num, row
        except csv.Error as error:
            raise DatasetError(
                f"{path}, line {reader.line_num}: {error}; put fields with quotes or line breaks in double "
                "quotes, and write a quote inside them twice"
            ) from None


def read_json(path: Path) -> Any:
    """The content of a JSON file; a key that stands twice in one object is an error, not lost data."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise DatasetError(f"{path}: {twice!r} stands twice in one object; one of the two would be lost")
        return found

    try:
        size = path.stat().st_size
        if size > MAX_JSON:
            raise DatasetError(f"{path} has {size} bytes, more than the {MAX_JSON} a JSON file may have")
        with opened(path) as file:
            return json.loads(file.read(), object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise DatasetError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise DatasetError(f"{path}: nested too deeply to be annotations") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def opened(path: Path, newline: str | None = None) -> IO[str]:
    """A file open for reading as text."""
    try:
        with path.open("rb") as raw:
            if raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise DatasetError(f"{path} is UTF-16 text; save it as UTF-8")
        return path.open(encoding="utf-8-sig", errors=FALLBACK, newline=newline)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error


def _numbered(path: Path, file: IO[str]) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        while line := file.readline(MAX_LINE):
            number += 1
            if len(line) == MAX_LINE:
                raise DatasetError(f"{path}, line {number}: more than {MAX_LINE} characters in one line")
            if "\0" in line:
                raise DatasetError(f"{path}, line {number}: this is not a text file")
            yield number, line
    except OSError as error:
        raise DatasetError(f"{path} cannot be read after line {number}: {error}") from error


def columns(path: Path, number: int, header: Iterable[str], wanted: Iterable[tuple[str, ...]]) -> list[int]:
    """Where the wanted columns stand; each is named by its usual names, the first being the best.

    >>> columns(Path("test.csv"), 1, ["key", " Video_ID", "text"], [("video_id",), ("caption", "text")])
    [1, 2]
    """
    names = [name.strip().lower() for name in header]
    found = []
    for choices in wanted:
        place = next((names.index(choice) for choice in choices if choice in names), None)
        if place is None:
            raise DatasetError(
                f"{path}, line {number}: no column {choices[0]!r}; there is {', '.join(names) or 'none'}"
            )
        found.append(place)
    return found


def cells(path: Path, number: int, row: list[str], places: Iterable[int]) -> list[str]:
    """Those cells of a row; a row that is too short is an error that names its line."""
    wanted = list(places)
    if max(wanted) >= len(row):
        raise DatasetError(
            f"{path}, line {number}: {len(row)} columns where the header names more: {_start(row)}"
        )
    return [row[place] for place in wanted]


def _start(row: list[str]) -> str:
    text = " | ".join(row)
    return text if len(text) <= 60 else text[:57] + "…"
