"""Flickr8k and Flickr30k: images with five captions each."""

from __future__ import annotations

import re
from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import (
    AnnotationFile,
    check_split,
    find_file,
    read_id_list,
    require_file,
)
from wordreel.lab.datasets.karpathy import read_karpathy
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import column_indices, pick_cells, read_lines, read_rows

SPLITS = ("train", "val", "test")
SUBFOLDERS = ("Flickr8k_text", "flickr30k", "flickr30k_images")
CAPTIONS = {
    "flickr8k": AnnotationFile(
        "Flickr8k's captions", ("Flickr8k.token.txt", "captions.txt"), "dataset_flickr8k.json alone does"
    ),
    "flickr30k": AnnotationFile(
        "Flickr30k's captions",
        ("results_20130124.token", "results.csv", "captions.txt"),
        "dataset_flickr30k.json alone does",
    ),
}
KARPATHY = {
    name: AnnotationFile(
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
        split: AnnotationFile(
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
TOKEN_LINE = re.compile(r"(?P<name>[^\t#]+)#\d+\s+(?P<text>.*)")
# One line of the published results.csv lacks its second bar: "2199200615.jpg| 4   A dog runs …".
BARRED_LINE = re.compile(r"(?P<name>[^|]+)\|\s*\d+\s*(\||\s)\s*(?P<text>.*)")


def read_8k(folder: Path, split: str) -> Split:
    """Read one split of Flickr8k; `dev` is the same as `val`."""
    return _read(folder, "flickr8k", split)


def read_30k(folder: Path, split: str) -> Split:
    """Read one split of Flickr30k."""
    return _read(folder, "flickr30k", split)


def _read(folder: Path, dataset: str, split: str) -> Split:
    split = "val" if split == "dev" else split
    check_split(dataset, split, SPLITS)
    path = find_file(folder, CAPTIONS[dataset], SUBFOLDERS)
    listed = find_file(folder, LISTS[dataset][split], SUBFOLDERS)
    karpathy = find_file(folder, KARPATHY[dataset], SUBFOLDERS)
    if karpathy and not (path and listed):
        return read_karpathy(karpathy, dataset, split)
    path = require_file(folder, CAPTIONS[dataset], SUBFOLDERS)
    order = [
        _with_suffix(name) for name in read_id_list(require_file(folder, LISTS[dataset][split], SUBFOLDERS))
    ]
    captions = read_captions(path)
    return build_split(dataset, split, order, captions, path, {name: name for name in captions})


def read_captions(path: Path) -> CaptionsById:
    """Image → captions, from a token file, a file separated by bars, or a CSV file with a header."""
    captions: CaptionsById = {}
    if path.name == "captions.txt":
        rows = read_rows(path)
        for number, header in rows:
            indices = column_indices(path, number, header, [("image", "image_name"), ("caption", "comment")])
            for line, row in rows:
                # Captions with commas are not always quoted here: extra columns belong to the caption.
                name, text = pick_cells(path, line, row, indices)
                if indices[1] == len(header) - 1:
                    text = ",".join(row[indices[1] :])
                add_caption(captions, name.strip(), text, f"{path}, line {line}")
        return captions
    pattern = BARRED_LINE if path.suffix == ".csv" else TOKEN_LINE
    for number, text in read_lines(path):
        if number == 1 and text.replace(" ", "").startswith("image_name|"):
            continue
        match = pattern.fullmatch(text)
        if match is None:
            raise DatasetError(f"{path}, line {number}: a picture, a number and a caption are expected")
        add_caption(captions, match["name"].strip(), match["text"], f"{path}, line {number}")
    return captions


def _with_suffix(name: str) -> str:
    return name if Path(name).suffix else f"{name}.jpg"  # Flickr30k's lists have numbers only
