"""Stream untrusted text files: any line ending, a byte order mark, stray Windows-1252 bytes, long lines."""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from wordreel.errors import DatasetError, NextStep

MAX_LINE_CHARS = 16 * 2**20  # longer lines are not annotations
MAX_JSON_BYTES = 2 * 2**30  # a JSON file is read as a whole
DECODE_FALLBACK = "wordreel-cp1252"


def _decode_as_windows(error: UnicodeError) -> tuple[str, int]:
    """Old annotation files have Windows-1252 or Latin-1 letters where bytes are not UTF-8."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw = error.object[error.start : error.end]
    return "".join(map(_character, raw)), error.end


def _character(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


codecs.register_error(DECODE_FALLBACK, _decode_as_windows)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the lines that are not blank, without line ending, with their numbers from 1.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "list.txt"
    ...     _ = path.write_bytes(bytes.fromhex("efbbbf") + b"video1\r\n\r\ncaf" + bytes.fromhex("e9"))
    ...     list(read_lines(path))
    [(1, 'video1'), (3, 'café')]
    """
    with open_text(path) as file:
        for number, line in _numbered(path, file):
            text = line.rstrip("\n")
            if text.strip():
                yield number, text


def read_rows(path: Path, delimiter: str = ",", strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that are not blank, each with the number of its last line."""
    with open_text(path, newline="") as file:
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
                f"{path}, line {reader.line_num}: {error}",
                NextStep("put fields with quotes or line breaks in double quotes, and double inner quotes"),
            ) from None


def read_json(path: Path) -> Any:
    """Load a JSON file. A duplicate key in an object is an error, because one value would be lost."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise DatasetError(f"{path}: {key!r} stands twice in one object; one of the two would be lost")
        return result

    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise DatasetError(f"{path} has {size} bytes; the limit for JSON is {MAX_JSON_BYTES}")
        with open_text(path) as file:
            return json.loads(file.read(), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise DatasetError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise DatasetError(f"{path}: nested too deeply to be annotations") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def open_text(path: Path, newline: str | None = None) -> IO[str]:
    """Open a file for reading as text."""
    try:
        with path.open("rb") as raw:
            if raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise DatasetError(f"{path} is UTF-16 text", NextStep("save it as UTF-8"))
        return path.open(encoding="utf-8-sig", errors=DECODE_FALLBACK, newline=newline)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error


def _numbered(path: Path, file: IO[str]) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        while line := file.readline(MAX_LINE_CHARS):
            number += 1
            if len(line) == MAX_LINE_CHARS:
                raise DatasetError(
                    f"{path}, line {number}: more than {MAX_LINE_CHARS} characters in one line"
                )
            if "\0" in line:
                raise DatasetError(f"{path}, line {number}: this is not a text file")
            yield number, line
    except OSError as error:
        raise DatasetError(f"{path} cannot be read after line {number}: {error}") from error


def read_columns(
    path: Path, columns: Sequence[tuple[str, ...]], delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the cells of these columns in every row of a CSV file with a header, with the row's line number.

    Each column is given by its possible names, the best first.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "test.csv"
    ...     _ = path.write_text("key,Video_ID,text\n1,video7,a man sings\n")
    ...     list(read_columns(path, [("video_id",), ("caption", "text")]))
    [(2, ['video7', 'a man sings'])]
    """
    rows = read_rows(path, delimiter)
    for number, header in rows:
        indices = column_indices(path, number, header, columns)
        for line, row in rows:
            yield line, pick_cells(path, line, row, indices)


def column_indices(
    path: Path, number: int, header: Iterable[str], columns: Iterable[tuple[str, ...]]
) -> list[int]:
    """Return the positions of columns in a header.

    Each column is given by its possible names, the best first.

    >>> column_indices(Path("a.csv"), 1, ["key", " Video_ID", "text"], [("video_id",), ("caption", "text")])
    [1, 2]
    """
    names = [name.strip().lower() for name in header]
    indices = []
    for choices in columns:
        index = next((names.index(choice) for choice in choices if choice in names), None)
        if index is None:
            raise DatasetError(
                f"{path}, line {number}: no column {choices[0]!r}; there is {', '.join(names) or 'none'}"
            )
        indices.append(index)
    return indices


def pick_cells(path: Path, number: int, row: list[str], indices: Sequence[int]) -> list[str]:
    """Return the cells of a row at these positions; raise for a row that is too short, naming its line."""
    if max(indices) >= len(row):
        raise DatasetError(
            f"{path}, line {number}: {len(row)} columns where the header names more: {_start(row)}"
        )
    return [row[index] for index in indices]


def _start(row: list[str]) -> str:
    text = " | ".join(row)
    return text if len(text) <= 60 else text[:57] + "…"


ADDRESS_STEP = NextStep("give the address as FILE.json:key.key")


def address_file(address: str) -> Path:
    """Return the file of an address.

    >>> address_file("splits.json:official.test").name
    'splits.json'
    """
    return Path(split_address(address)[0])


def is_json_address(text: str) -> bool:
    """Return whether a text names a JSON file or an address in one.

    >>> is_json_address("captions.json:dev"), is_json_address("captions.csv")
    (True, False)
    """
    return split_address(text)[0].endswith(".json")


def read_address(address: str) -> Any:
    """Return the JSON value at an address."""
    name, keys = split_address(address)
    value: Any = read_json(Path(name))
    for key in filter(None, keys.split(".")):
        if not isinstance(value, dict) or key not in value:
            have = ", ".join(map(str, list(value)[:8])) if isinstance(value, dict) else type(value).__name__
            raise DatasetError(f"{address} cannot be read: no {key!r} in {have}", ADDRESS_STEP)
        value = value[key]
    return value


def split_address(address: str) -> tuple[str, str]:
    """Split an address into its file and its keys."""
    name, colon, keys = address.rpartition(".json:")
    return (f"{name}.json", keys) if colon else (address, "")
