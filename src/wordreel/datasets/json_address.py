"""Captions and id lists inside JSON files, at an address such as `FILE.json:key.key`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordreel.datasets.annotation_files import read_id_list
from wordreel.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.datasets.text_files import read_json
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError, NextStep

ADDRESS_STEP = NextStep("give the address as FILE.json:key.key")


def address_file(address: str) -> Path:
    """The file of an address.

    >>> address_file("splits.json:official.test").name
    'splits.json'
    """
    return Path(_parts(address)[0])


def is_json_address(text: str) -> bool:
    """Whether a text names a JSON file or an address in one.

    >>> is_json_address("captions.json:dev"), is_json_address("captions.csv")
    (True, False)
    """
    return _parts(text)[0].endswith(".json")


def read_captions_at(address: str, split: str | None = None) -> Split:
    """Read the captions by id at an address; a split is one more key."""
    if split:
        address = f"{address}.{split}" if _parts(address)[1] else f"{address}:{split}"
    captions = parse_captions(read_address(address), address)
    file = address_file(address)
    return build_split(file.parent.name or "json", split or "all", captions, captions, file)


def parse_captions(content: object, where: str) -> CaptionsById:
    """Captions by id from a JSON object: id → caption or list of captions."""
    if not isinstance(content, dict) or not content or not _maps_to_texts(content):
        keys = f"; it has {', '.join(map(str, list(content)[:8]))}" if isinstance(content, dict) else ""
        raise DatasetError(
            f'{where} must map ids to captions: {{"clip1": ["a man sings", "a song"], …}}{keys}', ADDRESS_STEP
        )
    captions: CaptionsById = {}
    for item, texts in content.items():
        captions[item] = []
        for text in [texts] if isinstance(texts, str) else texts:
            add_caption(captions, item, text, where)
    return captions


def _maps_to_texts(content: dict[str, Any]) -> bool:
    return all(isinstance(value, str | list) for value in content.values())


def read_ids(address: str) -> list[str]:
    """Read ids from a list in a JSON file, or from a text file with one id per line.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "splits.json"
    ...     _ = path.write_text('{"official": {"test": ["video7", "video9"]}}')
    ...     read_ids(f"{path}:official.test")
    ['video7', 'video9']
    """
    if not is_json_address(address):
        return read_id_list(Path(address))
    ids = read_address(address)
    if not isinstance(ids, list) or not all(isinstance(item, str | int) for item in ids):
        raise DatasetError(f"{address} is not a list of ids", ADDRESS_STEP)
    return [str(item) for item in ids]


def read_address(address: str) -> Any:
    """The JSON value at an address."""
    name, keys = _parts(address)
    value: Any = read_json(Path(name))
    for key in filter(None, keys.split(".")):
        if not isinstance(value, dict) or key not in value:
            have = ", ".join(map(str, list(value)[:8])) if isinstance(value, dict) else type(value).__name__
            raise DatasetError(f"{address} cannot be read: no {key!r} in {have}", ADDRESS_STEP)
        value = value[key]
    return value


def _parts(address: str) -> tuple[str, str]:
    name, colon, keys = address.rpartition(".json:")
    return (f"{name}.json", keys) if colon else (address, "")
