"""COCO captions: pictures with five captions each; retrieval uses Karpathy's 5,000 test pictures."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, as_list, assemble, field, name
from wordreel.datasets.files import Wanted, find, known_split, look
from wordreel.datasets.karpathy import read_karpathy
from wordreel.datasets.text import read_json
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

KARPATHY = Wanted(
    "Karpathy's split of COCO",
    ("dataset_coco.json",),
    "the official splits val2014, train2014, val2017, train2017",
)
OFFICIAL = {
    split: Wanted(
        f"COCO's {split} captions",
        (f"captions_{split}.json",),
        "the splits of Karpathy's file, which has its own",
    )
    for split in ("train2014", "val2014", "train2017", "val2017")
}
SPLITS = ("train", "restval", "val", "test", *OFFICIAL)
FILES = (KARPATHY, *OFFICIAL.values())


def read(folder: Path, split: str) -> Split:
    """One split of Karpathy's or of the official ones; an id is the picture's file name."""
    known_split("coco", split, SPLITS)
    if split in OFFICIAL:
        path = find(folder, OFFICIAL[split])
        captions = _captions(path)
        return assemble("coco", split, captions, captions, path, {file: file for file in captions})
    captions = {}
    for year in ("train2014", "val2014"):
        if path_of_year := look(folder, OFFICIAL[year]):
            captions.update(_captions(path_of_year))
    return read_karpathy(find(folder, KARPATHY), "coco", split, captions or None)


def _captions(path: Path) -> Captions:
    content = read_json(path)
    names: dict[str, str] = {}
    captions: Captions = {}
    for image in as_list(field(content, "images", path), path, "'images'"):
        file = name(image, "file_name", path)
        names[name(image, "id", path)] = file
        captions[file] = []
    for entry in as_list(field(content, "annotations", path), path, "'annotations'"):
        key = name(entry, "image_id", path)
        if key not in names:
            raise DatasetError(f"{path}: a caption is of picture {key}, which 'images' does not have")
        add(captions, names[key], field(entry, "caption", path), f"{path}, picture {key}")
    return captions
