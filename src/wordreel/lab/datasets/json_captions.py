"""Captions and id lists inside JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import read_id_list
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import (
    ADDRESS_STEP,
    address_file,
    is_json_address,
    read_address,
    split_address,
)


def read_captions_at(address: str, split: str | None = None) -> Split:
    """Read the captions by id at an address; a split is one more key."""
    if split:
        address = f"{address}.{split}" if split_address(address)[1] else f"{address}:{split}"
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
