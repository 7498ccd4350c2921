"""COCO captions: images with five captions each; retrieval uses Karpathy's 5,000 test images."""

from __future__ import annotations

from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFile, check_split, find_file, require_file
from wordreel.lab.datasets.json_fields import require_field, require_list, require_name
from wordreel.lab.datasets.karpathy import read_karpathy
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_json

KARPATHY = AnnotationFile(
    "Karpathy's split of COCO",
    ("dataset_coco.json",),
    "the official splits val2014, train2014, val2017, train2017",
)
OFFICIAL = {
    split: AnnotationFile(
        f"COCO's {split} captions",
        (f"captions_{split}.json",),
        "the splits of Karpathy's file, which has its own",
    )
    for split in ("train2014", "val2014", "train2017", "val2017")
}
SPLITS = ("train", "restval", "val", "test", *OFFICIAL)
FILES = (KARPATHY, *OFFICIAL.values())


def read(folder: Path, split: str) -> Split:
    """Read one split, Karpathy's or an official one. Ids are file names."""
    check_split("coco", split, SPLITS)
    if split in OFFICIAL:
        path = require_file(folder, OFFICIAL[split])
        captions = _captions(path)
        return build_split("coco", split, captions, captions, path, {file: file for file in captions})
    captions = {}
    for year in ("train2014", "val2014"):
        if official := find_file(folder, OFFICIAL[year]):
            captions.update(_captions(official))
    return read_karpathy(require_file(folder, KARPATHY), "coco", split, captions or None)


def _captions(path: Path) -> CaptionsById:
    content = read_json(path)
    names: dict[str, str] = {}
    captions: CaptionsById = {}
    for image in require_list(require_field(content, "images", path), path, "'images'"):
        file = require_name(image, "file_name", path)
        names[require_name(image, "id", path)] = file
        captions[file] = []
    for entry in require_list(require_field(content, "annotations", path), path, "'annotations'"):
        key = require_name(entry, "image_id", path)
        if key not in names:
            raise DatasetError(f"{path}: a caption is of picture {key}, which 'images' does not have")
        add_caption(captions, names[key], require_field(entry, "caption", path), f"{path}, picture {key}")
    return captions
