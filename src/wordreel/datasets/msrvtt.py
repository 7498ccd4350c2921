"""MSR-VTT: 10,000 videos with 20 captions each; the official split, 1k-A (JSFusion) and 1k-B (Miech)."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, as_list, assemble, field, name
from wordreel.datasets.files import Wanted, find, known_split, look, missing, read_list
from wordreel.datasets.text import cells, columns, read_json, rows
from wordreel.datasets.types import Missing, Split

PLACES = ("msrvtt_data", "train_val_annotation", "test_annotation", "annotation")
ALL = Wanted(
    "MSR-VTT's videos and captions in one file", ("MSRVTT_data.json",), "the two official files do as well"
)
TRAIN_VAL = Wanted(
    "MSR-VTT's training and validation captions",
    ("train_val_videodatainfo.json",),
    "the test split can be read",
)
TEST = Wanted(
    "MSR-VTT's test captions",
    ("test_videodatainfo.json",),
    "train and val can be read, and 1k-a from MSRVTT_JSFUSION_test.csv alone",
)
PAIRS_1KA = Wanted(
    "the 1,000 video-caption pairs of 1k-A", ("MSRVTT_JSFUSION_test.csv",), "every split but 1k-a can be read"
)
LISTS = {
    "train": Wanted(
        "the training list", ("train_list_full.txt", "MSRVTT_train.full.csv"), "the captions name it"
    ),
    "val": Wanted(
        "the validation list", ("val_list_full.txt", "MSRVTT_val.full.csv"), "the captions name it"
    ),
    "test": Wanted("the test list", ("test_list_full.txt", "MSRVTT_test.full.csv"), "the captions name it"),
    "1k-a-train": Wanted(
        "the 9,000 training videos of 1k-A",
        ("MSRVTT_train.9k.csv", "train_list_jsfusion.txt"),
        "they are all videos but the 1,000 of 1k-a",
    ),
    "1k-a-train-7k": Wanted(
        "the 7,010 training videos that some papers use with 1k-A", ("MSRVTT_train.7k.csv",), "use 1k-a-train"
    ),
    "1k-b": Wanted(
        "the 1,000 test videos of 1k-B", ("test_list_miech.txt",), "every split but 1k-b can be read"
    ),
    "1k-b-train": Wanted(
        "the training list of 1k-B", ("train_list_miech.txt",), "every other split can be read"
    ),
}
OFFICIAL = {"train": ("train",), "val": ("validate", "val"), "test": ("test",)}
SPLITS = ("train", "val", "test", "1k-a", "1k-a-train", "1k-a-train-7k", "1k-b", "1k-b-train")
FILES = (ALL, TRAIN_VAL, TEST, PAIRS_1KA, *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """One split, captions in the order of the file."""
    known_split("msrvtt", split, SPLITS)
    if split == "1k-a":
        return _pairs(folder)
    tags, captions, source = _annotations(folder, split)
    notes: list[Missing] = []
    listed = look(folder, LISTS[split], PLACES)
    if split in OFFICIAL and any(tags.values()):
        order = [video_id for video_id, tag in tags.items() if tag in OFFICIAL[split]]
    elif split == "1k-a-train" and listed is None:
        tested = {item.id for item in _pairs(folder).items}
        order = [video_id for video_id in tags if video_id not in tested]
        notes.append(missing(folder, LISTS[split]))
    else:
        order = read_list(find(folder, LISTS[split], PLACES))
    return assemble("msrvtt", split, order, captions, source, missing=notes)


def _pairs(folder: Path) -> Split:
    path = find(folder, PAIRS_1KA, PLACES)
    captions: Captions = {}
    found = rows(path)
    for number, header in found:
        places = columns(path, number, header, [("video_id",), ("sentence", "caption")])
        for line, row in found:
            video_id, text = cells(path, line, row, places)
            add(captions, video_id.strip(), text, f"{path}, line {line}")
    return assemble("msrvtt", "1k-a", captions, captions, path)


def _annotations(folder: Path, split: str) -> tuple[dict[str, str], Captions, Path]:
    """Video → its tag, video → captions, and the file to name in errors."""
    whole = look(folder, ALL, PLACES)
    if whole:
        paths = [whole]
    elif split in ("train", "val"):
        paths = [find(folder, TRAIN_VAL, PLACES)]
    elif split == "test":
        paths = [find(folder, TEST, PLACES)]
    else:
        paths = [find(folder, wanted, PLACES) for wanted in (TRAIN_VAL, TEST)]
    tags: dict[str, str] = {}
    captions: Captions = {}
    for path in paths:
        content = read_json(path)
        for video in as_list(field(content, "videos", path), path, "'videos'"):
            video_id = name(video, "video_id", path)
            tags[video_id] = str(video.get("split", ""))
        for sentence in as_list(field(content, "sentences", path), path, "'sentences'"):
            video_id = name(sentence, "video_id", path)
            add(captions, video_id, field(sentence, "caption", path), f"{path}, {video_id!r}")
    return tags, captions, paths[0]
