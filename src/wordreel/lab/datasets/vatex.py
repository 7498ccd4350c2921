"""VATEX: ten-second videos with ten English captions each. Two lists of 1,500 test videos are in use."""

from __future__ import annotations

from pathlib import Path

from wordreel.lab.datasets.annotation_files import (
    AnnotationFile,
    check_split,
    find_file,
    read_id_list,
    require_file,
)
from wordreel.lab.datasets.json_fields import require_dict, require_field, require_list, require_name
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_json

SUBFOLDERS = ("vatex_data",)
ALL_CAPTIONS = AnnotationFile(
    "the captions of all VATEX videos", ("vatex_data.json",), "the official files do as well"
)
OFFICIAL = {
    "official-train": AnnotationFile(
        "VATEX's training captions", ("vatex_training_v1.0.json",), "vatex_data.json does"
    ),
    "official-val": AnnotationFile(
        "VATEX's validation captions", ("vatex_validation_v1.0.json",), "vatex_data.json does"
    ),
    "official-test": AnnotationFile(
        "VATEX's public test captions", ("vatex_public_test_english_v1.1.json",), "vatex_data.json does"
    ),
}
LISTS = {
    "train": AnnotationFile(
        "the training list", ("train_list.txt",), "official-train is in the official file"
    ),
    "val": AnnotationFile(
        "the validation list of the HGR split", ("val_list.txt",), "the other splits can be read"
    ),
    "test-hgr": AnnotationFile(
        "the test list of the HGR split", ("test_list.txt",), "the other splits can be read"
    ),
    "test-random": AnnotationFile(
        "the test list that CLIP2Video drew at random",
        ("test1k5_sec_list.txt",),
        "the other splits can be read",
    ),
    "teachtext-val": AnnotationFile(
        "TeachText's validation list", ("val_list_split1.txt",), "the other splits can be read"
    ),
    "teachtext-test": AnnotationFile(
        "TeachText's test list", ("val_list_split2.txt",), "the other splits can be read"
    ),
}
SPLITS = (*LISTS, *OFFICIAL)
FILES = (ALL_CAPTIONS, *OFFICIAL.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """Read one split, English captions only."""
    check_split("vatex", split, SPLITS)
    if split in OFFICIAL:
        path = require_file(folder, OFFICIAL[split], SUBFOLDERS)
        captions = _captions(path)
        return build_split("vatex", split, captions, captions, path)
    order = read_id_list(require_file(folder, LISTS[split], SUBFOLDERS))
    combined = find_file(folder, ALL_CAPTIONS, SUBFOLDERS)
    official = (find_file(folder, file, SUBFOLDERS) for file in OFFICIAL.values())
    paths = [combined] if combined else [path for path in official if path]
    captions = {}
    for path in paths or [require_file(folder, ALL_CAPTIONS, SUBFOLDERS)]:
        captions.update(_captions(path))
    return build_split("vatex", split, order, captions, paths[0])


def _captions(path: Path) -> CaptionsById:
    content = read_json(path)
    captions: CaptionsById = {}
    entries = (
        content.items()
        if isinstance(content, dict)
        else [
            (require_name(entry, "videoID", path), entry)
            for entry in require_list(content, path, "the captions")
        ]
    )
    for video, entry in entries:
        where = f"{path}, {video!r}"
        for text in require_list(
            require_field(require_dict(entry, where, "an entry"), "enCap", where), where, "'enCap'"
        ):
            add_caption(captions, video, text, where)
    return captions
