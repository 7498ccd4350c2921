"""Captions and lists of ids as people have them: JSON files, read at an address FILE.json:key.key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wordreel.errors import QueryError


def read_captions(address: str) -> dict[str, list[str]]:
    """A JSON object of id → caption or captions; an id is a file's name, with or without its ending."""
    raw = _at(address)
    if not isinstance(raw, dict) or not all(isinstance(v, str | list) for v in raw.values()):
        raise QueryError(
            f'what stands at {address} must map ids to captions: {{"clip1": ["a man sings", "a song"], …}}; '
            "say FILE.json:key if they are inside"
        )
    return {
        str(key): [value] if isinstance(value, str) else [str(caption) for caption in value]
        for key, value in raw.items()
    }


def read_ids(address: str) -> list[str]:
    """Ids from a list in a JSON file, or from a plain file with one id a line."""
    if file_of(address).suffix != ".json":
        try:
            return file_of(address).read_text(encoding="utf-8").split()
        except (OSError, ValueError) as error:
            raise QueryError(f"no list of ids at {address}: {error}") from error
    value = _at(address)
    if not isinstance(value, list):
        raise QueryError(f"what stands at {address} is not a list of ids; say FILE.json:key.key")
    return [str(item) for item in value]


def file_of(address: str) -> Path:
    """The file of an address.

    >>> file_of("splits.json:official.test").name
    'splits.json'
    """
    return Path(_parts(address)[0])


def _parts(address: str) -> tuple[str, str]:
    name, colon, keys = address.rpartition(".json:")
    return (f"{name}.json", keys) if colon else (address, "")


def _at(address: str) -> Any:
    name, keys = _parts(address)
    try:
        value: Any = json.loads(Path(name).read_text(encoding="utf-8"))
        for key in filter(None, keys.split(".")):
            value = value[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise QueryError(f"nothing can be read at {address}: {error!r}; say FILE.json:key.key") from error
    return value
