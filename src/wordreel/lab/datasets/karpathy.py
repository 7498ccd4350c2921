"""Karpathy's `dataset_*.json` for COCO and Flickr: images with their split and captions in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wordreel.lab.datasets.json_fields import require_field, require_list, require_name
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Caption, Split
from wordreel.util.text_files import read_json


def read_karpathy(
    path: Path, dataset: str, split: str, fallback: Mapping[str, Sequence[Caption]] | None = None
) -> Split:
    """Read one split. Ids are file names; images without captions take theirs from `fallback`."""
    captions: CaptionsById = {}
    paths: dict[str, str] = {}
    for number, image in enumerate(
        require_list(require_field(read_json(path), "images", path), path, "'images'"), 1
    ):
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
    return build_split(dataset, split, paths, captions, path, paths)
