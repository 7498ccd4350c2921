"""Text files line by line, with line numbers for error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from wordreel.errors import EvaluationError

LONGEST = 1 << 24  # bytes of a line; more is no line of ids, numbers or one text


@contextmanager
def atomic_text_file(path: Path) -> Iterator[IO[str]]:
    """A text file to write that gets its name when all is well."""
    partial = path.with_name(f".{path.name}.new")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        raise EvaluationError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """The number and the text of each line that is not blank."""
    number = 0
    try:
        # Read as bytes: only a line feed ends a line here, and a fault in the encoding has its line.
        with path.open("rb") as file:
            while raw := file.readline(LONGEST + 1):
                number += 1
                if len(raw) > LONGEST:
                    raise fault(path, number, f"the line is longer than {LONGEST} bytes")
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if line.strip():
                    yield number, line
    except UnicodeDecodeError:
        raise fault(path, number, "this is not UTF-8 text") from None
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror or error}") from None


def fault(path: Path, number: int, what: str) -> EvaluationError:
    """An error that names the file and the line."""
    return EvaluationError(f"{path}, line {number}: {what}")


def check_id(name: str, what: str) -> str:
    """An id without white space, which would split it in two when it is read."""
    if not name or name.split() != [name]:
        raise EvaluationError(f"{what} {name!r} is empty or holds white space, which these files cannot hold")
    return name
