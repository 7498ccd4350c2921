"""Captions and id lists inside JSON files, and captioned folders.

A captioned folder has `captions.json` (id → captions, or split → id → captions), `splits.json` and media.
`splits.json` has lists of ids by split, or by name and split (`official` is used); ids in its list
`missing_videos` are left out. Media files are in `videos/`, `images/` or `audio/`, named by id.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.annotation_files import read_id_list
from wordreel.lab.datasets.split_builder import (
    CaptionsById,
    add_caption,
    build_split,
    require_dict,
    require_list,
)
from wordreel.lab.datasets.types import Missing, Split
from wordreel.util.text_files import (
    ADDRESS_STEP,
    address_file,
    is_json_address,
    read_address,
    read_json,
    split_address,
)

CAPTIONS, SPLITS = "captions.json", "splits.json"
MEDIA_FOLDERS = ("videos", "images", "audio")
ALIASES = {"val": "dev", "dev": "val"}


def read_captions_at(address: str, split: str | None = None) -> Split:
    """Read the captions by id at an address; a split is one more key."""
    if split:
        address = f"{address}.{split}" if split_address(address)[1] else f"{address}:{split}"
    captions = parse_captions(read_address(address), address)
    file = address_file(address)
    return build_split(file.parent.name or "json", split or "all", captions, captions, file)


def parse_captions(content: object, where: str) -> CaptionsById:
    """Parse captions by id from a JSON object: id → caption or list of captions."""
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


def is_captioned(folder: Path) -> bool:
    """Return whether a folder has a `captions.json`."""
    return (folder / CAPTIONS).is_file()


def read_folder(folder: Path, split: str | None = None, dataset: str = "") -> Split:
    """Read one split, or all captions if `split` is None."""
    path = folder / CAPTIONS
    if not path.is_file():
        raise DatasetError(f"no {CAPTIONS} (item id → captions) in {folder}")
    content = require_dict(read_json(path), path, "the captions")
    by_split = bool(content) and all(isinstance(value, dict) for value in content.values())
    lists, unavailable = _lists(folder / SPLITS)
    if by_split:
        key = _split(split, content, path) if split else None
        captions = {}
        for name, part in content.items():
            if key is None or name == key:
                captions.update(parse_captions(part, f"{path}:{name}"))
        order = list(captions)
    else:
        captions = parse_captions(content, str(path))
        order = list(lists[_split(split, lists, folder / SPLITS)]) if split else list(captions)
    files = _media(folder)
    ids = [item for item in order if item not in unavailable]
    notes = []
    if len(ids) < len(order):
        notes.append(
            Missing(
                f"{len(order) - len(ids)} of {len(order)} items, which {SPLITS} lists as missing",
                folder,
                f"the other {len(ids)} items; figures on them are not comparable with the whole split",
            )
        )
    paths = {item: files[item] for item in ids if item in files}
    return build_split(dataset or folder.resolve().name, split or "all", ids, captions, path, paths, notes)


def _split(split: str, splits: dict[str, Any], path: Path) -> str:
    for name in (split, ALIASES.get(split)):
        if name in splits:
            return name
    if not splits:
        raise DatasetError(
            f"{path.parent} has no {path.name}, so it has no split {split!r}", NextStep("leave the split out")
        )
    raise DatasetError(f"{path} has no split {split!r}; it has {', '.join(splits)}")


def _lists(path: Path) -> tuple[dict[str, list[str]], set[str]]:
    if not path.is_file():
        return {}, set()
    content = require_dict(read_json(path), path, "the splits")
    unavailable = {
        str(name) for name in require_list(content.pop("missing_videos", []), path, "'missing_videos'")
    }
    if "official" in content:
        content = require_dict(content["official"], path, "'official'")
    lists = {
        name: [str(entry) for entry in require_list(entries, path, f"split {name!r}")]
        for name, entries in content.items()
    }
    for name, entries in lists.items():
        if len(set(entries)) != len(entries):
            raise DatasetError(f"{path}: split {name!r} lists an id twice")
    return lists, unavailable


def _media(folder: Path) -> dict[str, str]:
    """Paths of the media files, by name and by name without suffix."""
    paths: dict[str, str] = {}
    for part in MEDIA_FOLDERS:
        for path in sorted((folder / part).iterdir()) if (folder / part).is_dir() else ():
            paths[path.name] = str(path)
            paths.setdefault(path.stem, str(path))
    return paths
