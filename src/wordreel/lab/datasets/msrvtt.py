"""MSR-VTT: 10,000 videos with 20 captions each; the official split, 1k-A (JSFusion) and 1k-B (Miech)."""

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
from wordreel.lab.datasets.json_fields import require_field, require_list, require_name
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Missing, Split
from wordreel.util.text_files import read_columns, read_json

SUBFOLDERS = ("msrvtt_data", "train_val_annotation", "test_annotation", "annotation")
ALL = AnnotationFile(
    "MSR-VTT's videos and captions in one file", ("MSRVTT_data.json",), "the two official files do as well"
)
TRAIN_VAL = AnnotationFile(
    "MSR-VTT's training and validation captions",
    ("train_val_videodatainfo.json",),
    "the test split can be read",
)
TEST = AnnotationFile(
    "MSR-VTT's test captions",
    ("test_videodatainfo.json",),
    "train and val can be read, and 1k-a from MSRVTT_JSFUSION_test.csv alone",
)
PAIRS_1KA = AnnotationFile(
    "the 1,000 video-caption pairs of 1k-A", ("MSRVTT_JSFUSION_test.csv",), "every split but 1k-a can be read"
)
LISTS = {
    "train": AnnotationFile(
        "the training list", ("train_list_full.txt", "MSRVTT_train.full.csv"), "the captions name it"
    ),
    "val": AnnotationFile(
        "the validation list", ("val_list_full.txt", "MSRVTT_val.full.csv"), "the captions name it"
    ),
    "test": AnnotationFile(
        "the test list", ("test_list_full.txt", "MSRVTT_test.full.csv"), "the captions name it"
    ),
    "1k-a-train": AnnotationFile(
        "the 9,000 training videos of 1k-A",
        ("MSRVTT_train.9k.csv", "train_list_jsfusion.txt"),
        "they are all videos but the 1,000 of 1k-a",
    ),
    "1k-a-train-7k": AnnotationFile(
        "the 7,010 training videos that some papers use with 1k-A", ("MSRVTT_train.7k.csv",), "use 1k-a-train"
    ),
    "1k-b": AnnotationFile(
        "the 1,000 test videos of 1k-B", ("test_list_miech.txt",), "every split but 1k-b can be read"
    ),
    "1k-b-train": AnnotationFile(
        "the training list of 1k-B", ("train_list_miech.txt",), "every other split can be read"
    ),
}
OFFICIAL = {"train": ("train",), "val": ("validate", "val"), "test": ("test",)}
SPLITS = ("train", "val", "test", "1k-a", "1k-a-train", "1k-a-train-7k", "1k-b", "1k-b-train")
FILES = (ALL, TRAIN_VAL, TEST, PAIRS_1KA, *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """Read one split, with captions in the order of the file."""
    check_split("msrvtt", split, SPLITS)
    if split == "1k-a":
        return _pairs(folder)
    tags, captions, source = _annotations(folder, split)
    notes: list[Missing] = []
    listed = find_file(folder, LISTS[split], SUBFOLDERS)
    if split in OFFICIAL and any(tags.values()):
        order = [video_id for video_id, tag in tags.items() if tag in OFFICIAL[split]]
    elif split == "1k-a-train" and listed is None:
        test_ids = {item.id for item in _pairs(folder).items}
        order = [video_id for video_id in tags if video_id not in test_ids]
        notes.append(missing_file(folder, LISTS[split]))
    else:
        order = read_id_list(require_file(folder, LISTS[split], SUBFOLDERS))
    return build_split("msrvtt", split, order, captions, source, missing=notes)


def _pairs(folder: Path) -> Split:
    path = require_file(folder, PAIRS_1KA, SUBFOLDERS)
    captions: CaptionsById = {}
    for line, (video_id, text) in read_columns(path, [("video_id",), ("sentence", "caption")]):
        add_caption(captions, video_id.strip(), text, f"{path}, line {line}")
    return build_split("msrvtt", "1k-a", captions, captions, path)


def _annotations(folder: Path, split: str) -> tuple[dict[str, str], CaptionsById, Path]:
    """Video → split tag, video → captions, and the file to name in errors."""
    whole = find_file(folder, ALL, SUBFOLDERS)
    if whole:
        paths = [whole]
    elif split in ("train", "val"):
        paths = [require_file(folder, TRAIN_VAL, SUBFOLDERS)]
    elif split == "test":
        paths = [require_file(folder, TEST, SUBFOLDERS)]
    else:
        paths = [require_file(folder, file, SUBFOLDERS) for file in (TRAIN_VAL, TEST)]
    tags: dict[str, str] = {}
    captions: CaptionsById = {}
    for path in paths:
        content = read_json(path)
        for video in require_list(require_field(content, "videos", path), path, "'videos'"):
            video_id = require_name(video, "video_id", path)
            tags[video_id] = str(video.get("split", ""))
        for sentence in require_list(require_field(content, "sentences", path), path, "'sentences'"):
            video_id = require_name(sentence, "video_id", path)
            add_caption(captions, video_id, require_field(sentence, "caption", path), f"{path}, {video_id!r}")
    return tags, captions, paths[0]
