"""JSON values at an address such as `FILE.json:key.key`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError, NextStep
from wordreel.util.text_files import read_json

ADDRESS_STEP = NextStep("give the address as FILE.json:key.key")


def address_file(address: str) -> Path:
    """Return the file of an address.

    >>> address_file("splits.json:official.test").name
    'splits.json'
    """
    return Path(split_address(address)[0])


def is_json_address(text: str) -> bool:
    """Whether a text names a JSON file or an address in one.

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
