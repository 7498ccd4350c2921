"""Read TOML files that people write: recipes and search spaces."""

from __future__ import annotations

import tomllib
from typing import Any

from wordreel.errors import TrainingError


def parse_toml(data: bytes, what: str) -> dict[str, Any]:
    """The values of a TOML document; `what` names it in errors.

    >>> parse_toml(b"a = 1", "recipe x")
    {'a': 1}
    """
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise TrainingError(f"{what}: {error}") from None
    except RecursionError:
        raise TrainingError(f"{what}: nested too deeply") from None


def read_toml(path: Any, what: str) -> dict[str, Any]:
    """The values of a TOML file, or of one that comes with wordreel."""
    try:
        data: bytes = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{what} cannot be read: {error.strerror or error}") from None
    return parse_toml(data, what)
