"""A folder with `captions.json` (id → captions, or split → id → captions), `splits.json` and the media.

`splits.json` has lists of ids by split, or by name and split (`official` first); ids in its list
`missing_videos` are known not to be here. Media lie in `videos/`, `images/` or `audio/` under their ids.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wordreel.datasets.addresses import captions_of
from wordreel.datasets.build import as_dict, as_list, assemble
from wordreel.datasets.text import read_json
from wordreel.datasets.types import Missing, Split
from wordreel.errors import DatasetError

CAPTIONS, SPLITS = "captions.json", "splits.json"
MEDIA = ("videos", "images", "audio")
ALIASES = {"val": "dev", "dev": "val"}


def is_captioned(folder: Path) -> bool:
    """Whether a folder is of this kind."""
    return (folder / CAPTIONS).is_file()


def read(folder: Path, split: str | None = None, dataset: str = "") -> Split:
    """One split, or everything where none is named."""
    path = folder / CAPTIONS
    if not path.is_file():
        raise DatasetError(f"no {CAPTIONS} (item id → captions) in {folder}")
    content = as_dict(read_json(path), path, "the captions")
    by_split = bool(content) and all(isinstance(value, dict) for value in content.values())
    lists, gone = _lists(folder / SPLITS)
    if by_split:
        key = _split(split, content, path) if split else None
        captions = {}
        for name, part in content.items():
            if key in (None, name):
                captions.update(captions_of(part, f"{path}:{name}"))
        order = list(captions)
    else:
        captions = captions_of(content, str(path))
        order = list(lists[_split(split, lists, folder / SPLITS)]) if split else list(captions)
    files = _media(folder)
    here = [name for name in order if name not in gone]
    notes = []
    if len(here) < len(order):
        notes.append(
            Missing(
                f"{len(order) - len(here)} of {len(order)} items, which {SPLITS} says could not be had",
                folder,
                f"the other {len(here)}: figures on them are not those of the whole split",
            )
        )
    paths = {name: files[name] for name in here if name in files}
    return assemble(dataset or folder.resolve().name, split or "all", here, captions, path, paths, notes)


def _split(split: str, splits: dict[str, Any], path: Path) -> str:
    for name in (split, ALIASES.get(split)):
        if name in splits:
            return name
    if not splits:
        raise DatasetError(
            f"{path} is not there, so {path.parent} has no split {split!r}; leave the split out"
        )
    raise DatasetError(f"{path} has no split {split!r}; it has {', '.join(splits)}")


def _lists(path: Path) -> tuple[dict[str, list[str]], set[str]]:
    if not path.is_file():
        return {}, set()
    content = as_dict(read_json(path), path, "the splits")
    gone = {str(name) for name in as_list(content.pop("missing_videos", []), path, "'missing_videos'")}
    if "official" in content:
        content = as_dict(content["official"], path, "'official'")
    lists = {
        name: [str(entry) for entry in as_list(entries, path, f"split {name!r}")]
        for name, entries in content.items()
    }
    for name, entries in lists.items():
        if len(set(entries)) != len(entries):
            raise DatasetError(f"{path}: split {name!r} lists an id twice")
    return lists, gone


def _media(folder: Path) -> dict[str, str]:
    """Media files by name and by name without ending."""
    found: dict[str, str] = {}
    for part in MEDIA:
        if (folder / part).is_dir():
            with os.scandir(folder / part) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    found[entry.name] = entry.path
                    found.setdefault(Path(entry.name).stem, entry.path)
    return found
