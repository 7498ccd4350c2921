"""CUB-200-2011: images of 200 bird species, for image-to-image retrieval."""

from __future__ import annotations

from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFile, check_split, require_file
from wordreel.lab.datasets.types import Item, Split
from wordreel.util.text_files import read_lines

SUBFOLDERS = ("CUB_200_2011",)
IMAGES = AnnotationFile("CUB's pictures by number", ("images.txt",), "nothing of CUB can be read")
LABELS = AnnotationFile(
    "CUB's class of each picture", ("image_class_labels.txt",), "nothing of CUB can be read"
)
HALVES = AnnotationFile(
    "CUB's own training and test halves",
    ("train_test_split.txt",),
    "train and test of retrieval, which go by class",
)
SPLITS = ("train", "test", "official-train", "official-test")
FILES = (IMAGES, LABELS, HALVES)
TRAIN_CLASSES = 100  # retrieval trains on the first hundred classes and tests on the others


def read(folder: Path, split: str) -> Split:
    """Read one split: by class for retrieval (`train`, `test`), or CUB's own by image (`official-…`)."""
    check_split("cub", split, SPLITS)
    names = _numbered(require_file(folder, IMAGES, SUBFOLDERS))
    label_file = require_file(folder, LABELS, SUBFOLDERS)
    labels = _numbered(label_file)
    if split.startswith("official"):
        flag = "1" if split == "official-train" else "0"
        flags = _numbered(require_file(folder, HALVES, SUBFOLDERS))
        chosen = [number for number in names if flags.get(number) == flag]
    else:
        chosen = [
            number
            for number in names
            if (_label(label_file, number, labels) <= TRAIN_CLASSES) == (split == "train")
        ]
    if not chosen:
        raise DatasetError(f"no picture of CUB in {folder} belongs to split {split!r}")
    items = tuple(
        Item(names[number], path=f"images/{names[number]}", label=_label(label_file, number, labels))
        for number in chosen
    )
    return Split("cub", split, items)


def _numbered(path: Path) -> dict[str, str]:
    values: dict[str, str] = {}
    for number, line in read_lines(path):
        key, space, value = line.strip().partition(" ")
        if not space:
            raise DatasetError(f"{path}, line {number}: a picture's number and a value are expected")
        if key in values:
            raise DatasetError(f"{path}, line {number}: picture {key} stands here twice")
        values[key] = value.strip()
    return values


def _label(path: Path, number: str, labels: dict[str, str]) -> int:
    try:
        return int(labels[number])
    except (KeyError, ValueError):
        raise DatasetError(f"{path}: picture {number} has no class number") from None
