"""Captions and lists of ids inside JSON files, at an address FILE.json:key.key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordreel.datasets.build import Captions, add, assemble
from wordreel.datasets.files import read_list
from wordreel.datasets.text import read_json
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError


def file_of(address: str) -> Path:
    """The file of an address.

    >>> file_of("splits.json:official.test").name
    'splits.json'
    """
    return Path(_parts(address)[0])


def is_address(text: str) -> bool:
    """Whether this names a JSON file or a place in one.

    >>> is_address("captions.json:dev"), is_address("captions.csv")
    (True, False)
    """
    return _parts(text)[0].endswith(".json")


def read_address(address: str, split: str | None = None) -> Split:
    """Captions by id at an address; a split is one more key."""
    if split:
        address = f"{address}.{split}" if _parts(address)[1] else f"{address}:{split}"
    captions = captions_of(at(address), address)
    return assemble(
        file_of(address).parent.name or "json", split or "all", captions, captions, file_of(address)
    )


def captions_of(found: object, where: str) -> Captions:
    """Captions by id from a JSON object of id → caption or captions."""
    if not isinstance(found, dict) or not found or not all(isinstance(v, str | list) for v in found.values()):
        keys = f"; there is {', '.join(map(str, list(found)[:8]))}" if isinstance(found, dict) else ""
        raise DatasetError(
            f'what stands at {where} must map ids to captions: {{"clip1": ["a man sings", "a song"], …}}; '
            f"say FILE.json:key if they are inside{keys}"
        )
    captions: Captions = {}
    for name, texts in found.items():
        captions[name] = []
        for text in [texts] if isinstance(texts, str) else texts:
            add(captions, name, text, where)
    return captions


def read_ids(address: str) -> list[str]:
    """Ids from a list in a JSON file, or from a plain file with one id a line."""
    if not is_address(address):
        return read_list(Path(address))
    found = at(address)
    if not isinstance(found, list) or not all(isinstance(name, str | int) for name in found):
        raise DatasetError(f"what stands at {address} is not a list of ids; say FILE.json:key.key")
    return [str(name) for name in found]


def at(address: str) -> Any:
    """What stands at an address."""
    name, keys = _parts(address)
    found: Any = read_json(Path(name))
    for key in filter(None, keys.split(".")):
        if not isinstance(found, dict) or key not in found:
            there = ", ".join(map(str, list(found)[:8])) if isinstance(found, dict) else type(found).__name__
            raise DatasetError(f"nothing can be read at {address}: no {key!r} in {there}; say FILE.json:key")
        found = found[key]
    return found


def _parts(address: str) -> tuple[str, str]:
    name, colon, keys = address.rpartition(".json:")
    return (f"{name}.json", keys) if colon else (address, "")
