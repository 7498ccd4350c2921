"""AudioCaps: ten-second YouTube clips with one caption each for training and five for testing."""

from __future__ import annotations

from pathlib import Path

from wordreel.lab.datasets.annotation_files import (
    AnnotationFile,
    check_split,
    find_file,
    missing_file,
    read_id_list,
    require_file,
)
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_columns

SUBFOLDERS = ("dataset",)
YOUTUBE_ID_CHARS = 11
CAPTIONS = {
    split: AnnotationFile(f"AudioCaps' {split} captions", (f"{split}.csv",), "the other splits can be read")
    for split in ("train", "val", "test")
}
LISTS = {
    "train": AnnotationFile(
        "the training list of text-audio retrieval", ("train_list.txt",), "all captioned clips"
    ),
    "val": AnnotationFile(
        "the validation list of text-audio retrieval", ("filtered_val_list.txt",), "all captioned clips"
    ),
    "test": AnnotationFile(
        "the test list of text-audio retrieval",
        ("final_filtered_test_list.txt",),
        "all captioned clips, which are more than the list has: the figures are not comparable with its",
    ),
}
SPLITS = tuple(CAPTIONS)
FILES = (*CAPTIONS.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """Read one split. Ids are YouTube ids."""
    check_split("audiocaps", split, SPLITS)
    path = require_file(folder, CAPTIONS[split], SUBFOLDERS)
    captions: CaptionsById = {}
    for line, (name, text) in read_columns(path, [("youtube_id",), ("caption",)]):
        add_caption(captions, name.strip(), text, f"{path}, line {line}")
    listed = find_file(folder, LISTS[split], SUBFOLDERS)
    if listed is None:
        return build_split(
            "audiocaps", split, captions, captions, path, missing=[missing_file(folder, LISTS[split])]
        )
    order = [name if name in captions else name[:YOUTUBE_ID_CHARS] for name in read_id_list(listed)]
    return build_split("audiocaps", split, order, captions, path)
