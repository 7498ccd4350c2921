"""Published sets of pictures: captioned ones (COCO, Flickr), and ones with classes (CUB, SOP)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFolder, read_id_list
from wordreel.lab.datasets.split_builder import (
    CaptionsById,
    add_caption,
    require_field,
    require_list,
    require_name,
)
from wordreel.lab.datasets.types import Caption, Item, Split
from wordreel.util.text_files import column_indices, pick_cells, read_json, read_lines, read_rows

FLICKR_TOKEN_LINE = re.compile(r"(?P<name>[^\t#]+)#\d+\s+(?P<text>.*)")
# One line of the published results.csv lacks its second bar: "2199200615.jpg| 4   A dog runs …".
FLICKR_BARRED_LINE = re.compile(r"(?P<name>[^|]+)\|\s*\d+\s*(\||\s)\s*(?P<text>.*)")
CUB_TRAIN_CLASSES = 100  # retrieval trains on the first hundred classes and tests on the others
SOP_HEADER = ["image_id", "class_id", "super_class_id", "path"]
NUMBER = re.compile("[0-9]{1,9}")


def coco(files: AnnotationFolder, split: str) -> Split:
    """Read a split of COCO, Karpathy's or an official one. Ids are file names."""
    if f"captions.{split}" in files.dataset.files:
        path = files.require(f"captions.{split}")
        captions = _coco_captions(path)
        return files.build(split, captions, captions, path, {file: file for file in captions})
    captions = {}
    for year in ("train2014", "val2014"):
        if official := files.find(f"captions.{year}"):
            captions.update(_coco_captions(official))
    return _karpathy(files, files.require("karpathy"), split, captions or None)


def _coco_captions(path: Path) -> CaptionsById:
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


def _karpathy(
    files: AnnotationFolder, path: Path, split: str, fallback: Mapping[str, Sequence[Caption]] | None = None
) -> Split:
    """Read Karpathy's `dataset_*.json`; images without captions take theirs from `fallback`."""
    captions: CaptionsById = {}
    paths: dict[str, str] = {}
    images = require_list(require_field(read_json(path), "images", path), path, "'images'")
    for number, image in enumerate(images, 1):
        where = f"{path}, image {number}"
        if require_field(image, "split", where) != split:
            continue
        file = require_name(image, "filename", where)
        paths[file] = f"{image['filepath']}/{file}" if image.get("filepath") else file
        if fallback is not None and "sentences" not in image:
            captions[file] = list(fallback.get(file, ()))
            continue
        for sentence in require_list(require_field(image, "sentences", where), where, "'sentences'"):
            add_caption(captions, file, require_field(sentence, "raw", where), where)
    return files.build(split, paths, captions, path, paths)


def flickr(files: AnnotationFolder, split: str) -> Split:
    """Read a split of Flickr8k or Flickr30k; `dev` is the same as `val`."""
    karpathy = files.find("karpathy")
    if karpathy and not (files.find("captions") and files.find(f"list.{split}")):
        return _karpathy(files, karpathy, split)
    path = files.require("captions")
    names = read_id_list(files.require(f"list.{split}"))
    order = [name if Path(name).suffix else f"{name}.jpg" for name in names]  # Flickr30k's have numbers only
    captions = _flickr_captions(path)
    return files.build(split, order, captions, path, {name: name for name in captions})


def _flickr_captions(path: Path) -> CaptionsById:
    """Return the captions of a token file, a file separated by bars, or a CSV file with a header."""
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
    pattern = FLICKR_BARRED_LINE if path.suffix == ".csv" else FLICKR_TOKEN_LINE
    for number, text in read_lines(path):
        if number == 1 and text.replace(" ", "").startswith("image_name|"):
            continue
        match = pattern.fullmatch(text)
        if match is None:
            raise DatasetError(f"{path}, line {number}: a picture, a number and a caption are expected")
        add_caption(captions, match["name"].strip(), match["text"], f"{path}, line {number}")
    return captions


def cub(files: AnnotationFolder, split: str) -> Split:
    """Read a split of CUB: by class for retrieval (`train`, `test`), or CUB's own halves (`official-…`)."""
    names = _numbered(files.require("images"))
    label_file = files.require("labels")
    labels = _numbered(label_file)

    def label(number: str) -> int:
        if not NUMBER.fullmatch(labels.get(number, "")):
            raise DatasetError(f"{label_file}: picture {number} has no class number")
        return int(labels[number])

    if split.startswith("official"):
        flag = "1" if split == "official-train" else "0"
        flags = _numbered(files.require("halves"))
        chosen = [number for number in names if flags.get(number) == flag]
    else:
        chosen = [number for number in names if (label(number) <= CUB_TRAIN_CLASSES) == (split == "train")]
    if not chosen:
        raise DatasetError(f"no picture of CUB in {files.folder} belongs to split {split!r}")
    items = (Item(names[number], path=f"images/{names[number]}", label=label(number)) for number in chosen)
    return Split("cub", split, tuple(items))


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


def sop(files: AnnotationFolder, split: str) -> Split:
    """Read a split of Stanford Online Products, each image with its class."""
    path = files.require(f"list.{split}")
    items: dict[str, Item] = {}
    for number, line in read_lines(path):
        parts = line.split()
        if number == 1 and parts == SOP_HEADER:
            continue
        if len(parts) != len(SOP_HEADER) or not NUMBER.fullmatch(parts[1]):
            raise DatasetError(f"{path}, line {number}: expected {' '.join(SOP_HEADER)}, found {line[:60]!r}")
        if parts[3] in items:
            raise DatasetError(f"{path}, line {number}: {parts[3]} stands here twice")
        items[parts[3]] = Item(parts[3], path=parts[3], label=int(parts[1]))
    if not items:
        raise DatasetError(f"{path} lists nothing")
    return Split("sop", split, tuple(items.values()))
