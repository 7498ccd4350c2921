"""Flickr8k and Flickr30k: pictures with five captions each."""

from __future__ import annotations

import re
from pathlib import Path

from wordreel.datasets.build import Captions, add, assemble
from wordreel.datasets.files import Wanted, find, known_split, look, read_list
from wordreel.datasets.karpathy import read_karpathy
from wordreel.datasets.text import cells, columns, lines, rows
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

SPLITS = ("train", "val", "test")
PLACES = ("Flickr8k_text", "flickr30k", "flickr30k_images")
CAPTIONS = {
    "flickr8k": Wanted(
        "Flickr8k's captions", ("Flickr8k.token.txt", "captions.txt"), "dataset_flickr8k.json alone does"
    ),
    "flickr30k": Wanted(
        "Flickr30k's captions",
        ("results_20130124.token", "results.csv", "captions.txt"),
        "dataset_flickr30k.json alone does",
    ),
}
KARPATHY = {
    name: Wanted(
        f"Karpathy's split of {name}", (f"dataset_{name}.json",), "the split lists and the captions do"
    )
    for name in CAPTIONS
}
NAMES = {
    "train": ("Flickr_8k.trainImages.txt", "flickr30k_train.txt", "train.txt"),
    "val": ("Flickr_8k.devImages.txt", "flickr30k_val.txt", "val.txt"),
    "test": ("Flickr_8k.testImages.txt", "flickr30k_test.txt", "test.txt"),
}
LISTS = {
    name: {
        split: Wanted(
            f"{name}'s {split} list",
            tuple(file for file in files if (other not in file)),
            f"dataset_{name}.json has the splits and the captions",
        )
        for split, files in NAMES.items()
    }
    for name, other in (("flickr8k", "flickr30k"), ("flickr30k", "8k"))
}
FILES_8K = (CAPTIONS["flickr8k"], *LISTS["flickr8k"].values(), KARPATHY["flickr8k"])
FILES_30K = (CAPTIONS["flickr30k"], *LISTS["flickr30k"].values(), KARPATHY["flickr30k"])
TOKEN = re.compile(r"(?P<name>[^\t#]+)#\d+\s+(?P<text>.*)")
# One line of the published results.csv lacks its second bar: "2199200615.jpg| 4   A dog runs …".
BARRED = re.compile(r"(?P<name>[^|]+)\|\s*\d+\s*(\||\s)\s*(?P<text>.*)")


def read_8k(folder: Path, split: str) -> Split:
    """One split of Flickr8k; `dev` is `val`."""
    return _read(folder, "flickr8k", split)


def read_30k(folder: Path, split: str) -> Split:
    """One split of Flickr30k."""
    return _read(folder, "flickr30k", split)


def _read(folder: Path, dataset: str, split: str) -> Split:
    split = "val" if split == "dev" else split
    known_split(dataset, split, SPLITS)
    path = look(folder, CAPTIONS[dataset], PLACES)
    listed = look(folder, LISTS[dataset][split], PLACES)
    whole = look(folder, KARPATHY[dataset], PLACES)
    if whole and not (path and listed):
        return read_karpathy(whole, dataset, split)
    path = find(folder, CAPTIONS[dataset], PLACES)
    order = [_named(name) for name in read_list(find(folder, LISTS[dataset][split], PLACES))]
    captions = read_captions(path)
    return assemble(dataset, split, order, captions, path, {name: name for name in captions})


def read_captions(path: Path) -> Captions:
    """Picture → captions from a token file, a file with bars, or a CSV file with a header."""
    captions: Captions = {}
    if path.name == "captions.txt":
        found = rows(path)
        for number, header in found:
            places = columns(path, number, header, [("image", "image_name"), ("caption", "comment")])
            for line, row in found:
                # Captions with commas are not always in quotes here; what follows the last column is theirs.
                name, text = cells(path, line, row, places)
                if places[1] == len(header) - 1:
                    text = ",".join(row[places[1] :])
                add(captions, name.strip(), text, f"{path}, line {line}")
        return captions
    shape = BARRED if path.suffix == ".csv" else TOKEN
    for number, text in lines(path):
        if number == 1 and text.replace(" ", "").startswith("image_name|"):
            continue
        match = shape.fullmatch(text)
        if match is None:
            raise DatasetError(f"{path}, line {number}: a picture, a number and a caption are expected")
        add(captions, match["name"].strip(), match["text"], f"{path}, line {number}")
    return captions


def _named(name: str) -> str:
    return name if Path(name).suffix else f"{name}.jpg"  # lists of Flickr30k have numbers only
