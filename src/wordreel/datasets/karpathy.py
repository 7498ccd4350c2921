"""Karpathy's `dataset_*.json`: pictures with their split and sentences in one file, for COCO and Flickr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wordreel.datasets.build import Captions, add, as_list, assemble, field, name
from wordreel.datasets.text import read_json
from wordreel.datasets.types import Caption, Split


def read_karpathy(
    path: Path, dataset: str, split: str, elsewhere: Mapping[str, Sequence[Caption]] | None = None
) -> Split:
    """One split; an id is the file's name. Sentences come from `elsewhere` where the file has none."""
    captions: Captions = {}
    paths: dict[str, str] = {}
    for number, image in enumerate(as_list(field(read_json(path), "images", path), path, "'images'"), 1):
        where = f"{path}, image {number}"
        if field(image, "split", where) != split:
            continue
        file = name(image, "filename", where)
        paths[file] = f"{image['filepath']}/{file}" if image.get("filepath") else file
        if elsewhere is not None and "sentences" not in image:
            captions[file] = list(elsewhere.get(file, ()))
            continue
        for sentence in as_list(field(image, "sentences", where), where, "'sentences'"):
            add(captions, file, field(sentence, "raw", where), where)
    return assemble(dataset, split, paths, captions, path, paths)
