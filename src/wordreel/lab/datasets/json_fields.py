"""Checked access to the fields of untrusted JSON: each function returns the value or names what is wrong."""

from __future__ import annotations

from typing import Any

from wordreel.errors import DatasetError
from wordreel.lab.datasets.split_builder import encodable


def require_dict(value: object, where: object, what: str) -> dict[str, Any]:
    """Return the value, which must be a JSON object.

    >>> require_dict([1], "train.json", "the captions")
    Traceback (most recent call last):
    wordreel.errors.DatasetError: train.json: the captions must be a JSON object, not list
    """
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: {what} must be a JSON object, not {type(value).__name__}")
    return value


def require_list(value: object, where: object, what: str) -> list[Any]:
    """Return the value, which must be a list."""
    if not isinstance(value, list | tuple):
        raise DatasetError(f"{where}: {what} must be a list, not {type(value).__name__}")
    return list(value)


def require_field(entry: object, key: str, where: object) -> Any:
    """One field of a JSON object."""
    if not isinstance(entry, dict) or key not in entry:
        have = ", ".join(map(repr, list(entry)[:8])) if isinstance(entry, dict) else type(entry).__name__
        raise DatasetError(f"{where}: no field {key!r}; there is {have}")
    return entry[key]


def require_name(entry: object, key: str, where: object) -> str:
    """Return an id or a file name in a field of a JSON object."""
    value = require_field(entry, key, where)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DatasetError(f"{where}: {key!r} is no name: {str(value)[:60]!r}")
    return encodable(str(value).strip())
