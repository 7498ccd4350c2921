"""Stanford Online Products: images of products, for image-to-image retrieval."""

from __future__ import annotations

import re
from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFile, check_split, require_file
from wordreel.lab.datasets.types import Item, Split
from wordreel.util.text_files import read_lines

SUBFOLDERS = ("Stanford_Online_Products",)
LISTS = {
    "train": AnnotationFile("the training pictures", ("Ebay_train.txt",), "test can be read"),
    "test": AnnotationFile("the test pictures", ("Ebay_test.txt",), "train can be read"),
}
SPLITS = tuple(LISTS)
FILES = tuple(LISTS.values())
NUMBER = re.compile("[0-9]{1,9}")
HEADER = ["image_id", "class_id", "super_class_id", "path"]


def read(folder: Path, split: str) -> Split:
    """Read one split, each image with its class."""
    check_split("sop", split, SPLITS)
    path = require_file(folder, LISTS[split], SUBFOLDERS)
    items: dict[str, Item] = {}
    for number, line in read_lines(path):
        parts = line.split()
        if number == 1 and parts == HEADER:
            continue
        if len(parts) != len(HEADER) or not NUMBER.fullmatch(parts[1]):
            raise DatasetError(f"{path}, line {number}: expected {' '.join(HEADER)}, found {line[:60]!r}")
        if parts[3] in items:
            raise DatasetError(f"{path}, line {number}: {parts[3]} stands here twice")
        items[parts[3]] = Item(parts[3], path=parts[3], label=int(parts[1]))
    if not items:
        raise DatasetError(f"{path} lists nothing")
    return Split("sop", split, tuple(items.values()))
