"""ActivityNet Captions: long videos, with several sentences each, in temporal order."""

from __future__ import annotations

from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFile, check_split, find_file, require_file
from wordreel.lab.datasets.json_fields import require_dict, require_field, require_list
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_json

SUBFOLDERS = ("activitynet_data", "anet_captions")
CAPTIONS = {
    "train": AnnotationFile("ActivityNet's training captions", ("train.json",), "val1 and val2 can be read"),
    "val1": AnnotationFile(
        "the first set of validation captions", ("val_1.json",), "train and val2 can be read"
    ),
    "val2": AnnotationFile(
        "the second set of validation captions", ("val_2.json",), "train and val1 can be read"
    ),
}
LISTS = {
    "train": AnnotationFile(
        "the list of training videos", ("train_ids.json",), "every captioned video is taken"
    ),
    "val1": AnnotationFile(
        "the list of validation videos", ("val_ids.json",), "every captioned video is taken"
    ),
}
SPLITS = tuple(CAPTIONS)
FILES = (*CAPTIONS.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """Read one split: each sentence with its span. Ids include the annotations' `v_`."""
    check_split("activitynet", split, SPLITS)
    path = require_file(folder, CAPTIONS[split], SUBFOLDERS)
    captions: CaptionsById = {}
    for name, entry in require_dict(read_json(path), path, "the captions").items():
        where = f"{path}, {name!r}"
        sentences = require_list(require_field(entry, "sentences", where), where, "'sentences'")
        times = require_list(require_field(entry, "timestamps", where), where, "'timestamps'")
        if len(times) != len(sentences):
            raise DatasetError(f"{where}: {len(sentences)} sentences and {len(times)} timestamps")
        captions.setdefault(name, [])
        for sentence, time in zip(sentences, times, strict=True):
            pair = require_list(time, where, "a timestamp")
            if len(pair) != 2:
                raise DatasetError(f"{where}: a timestamp has a start and an end, not {len(pair)} numbers")
            add_caption(captions, name, sentence, where, *pair)
    listed = find_file(folder, LISTS[split], SUBFOLDERS) if split in LISTS else None
    order = require_list(read_json(listed), listed, "the ids") if listed else list(captions)
    return build_split("activitynet", split, map(str, order), captions, path)
