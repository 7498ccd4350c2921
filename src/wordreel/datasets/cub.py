"""CUB-200-2011: pictures of 200 kinds of birds, searched by picture."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.files import Wanted, find, known_split
from wordreel.datasets.text import lines
from wordreel.datasets.types import Item, Split
from wordreel.errors import DatasetError

PLACES = ("CUB_200_2011",)
IMAGES = Wanted("CUB's pictures by number", ("images.txt",), "nothing of CUB can be read")
LABELS = Wanted("CUB's class of each picture", ("image_class_labels.txt",), "nothing of CUB can be read")
HALVES = Wanted(
    "CUB's own training and test halves",
    ("train_test_split.txt",),
    "train and test of retrieval, which go by class",
)
SPLITS = ("train", "test", "official-train", "official-test")
FILES = (IMAGES, LABELS, HALVES)
TRAINED = 100  # retrieval trains on the first hundred classes and tests on the others


def read(folder: Path, split: str) -> Split:
    """One split: by class for retrieval (`train`, `test`), by picture in CUB's own halves (`official-…`)."""
    known_split("cub", split, SPLITS)
    names = _numbered(find(folder, IMAGES, PLACES))
    label_file = find(folder, LABELS, PLACES)
    labels = _numbered(label_file)
    if split.startswith("official"):
        wanted = "1" if split == "official-train" else "0"
        half = _numbered(find(folder, HALVES, PLACES))
        chosen = [number for number in names if half.get(number) == wanted]
    else:
        chosen = [
            number
            for number in names
            if (_label(label_file, number, labels) <= TRAINED) == (split == "train")
        ]
    if not chosen:
        raise DatasetError(f"no picture of CUB in {folder} belongs to split {split!r}")
    items = tuple(
        Item(names[number], path=f"images/{names[number]}", label=_label(label_file, number, labels))
        for number in chosen
    )
    return Split("cub", split, items)


def _numbered(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in lines(path):
        key, space, value = line.strip().partition(" ")
        if not space:
            raise DatasetError(f"{path}, line {number}: a picture's number and a value are expected")
        if key in found:
            raise DatasetError(f"{path}, line {number}: picture {key} stands here twice")
        found[key] = value.strip()
    return found


def _label(path: Path, number: str, labels: dict[str, str]) -> int:
    try:
        return int(labels[number])
    except (KeyError, ValueError):
        raise DatasetError(f"{path}: picture {number} has no class number") from None
