"""QuerYD: YouTube videos with transcribed audio descriptions for the visually impaired."""

from __future__ import annotations

from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import (
    AnnotationFile,
    check_split,
    find_file,
    missing_file,
    read_id_list,
    require_file,
)
from wordreel.lab.datasets.caption_pickles import join_words, load_captions
from wordreel.lab.datasets.json_fields import require_dict, require_list
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split

SUBFOLDERS = (
    "structured-symlinks/structured-symlinks",
    "high-quality/structured-symlinks/structured-symlinks",
)
STEMS = ("combined_filtered", "combined_filtered-v2", "combined_filtered-v1")
CAPTIONS = AnnotationFile(
    "QuerYD's transcribed descriptions",
    (*(f"raw_captions_{stem}.pkl" for stem in STEMS), "raw_captions_combined_filtered.json"),
    "nothing of QuerYD can be read",
)
TIMES = AnnotationFile(
    "when each description is spoken",
    (*(f"times_captions_{stem}.pkl" for stem in STEMS), "times_captions_combined_filtered.json"),
    "retrieval of whole videos, which needs no times",
)
LISTS = {
    split: AnnotationFile(f"QuerYD's {split} list", (f"{split}_list.txt",), "the other splits can be read")
    for split in ("train", "val", "test")
}
SPLITS = tuple(LISTS)
FILES = (CAPTIONS, TIMES, *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """Read one split: each description by itself, with its span if the file of times exists."""
    check_split("queryd", split, SPLITS)
    path = require_file(folder, CAPTIONS, SUBFOLDERS)
    order = read_id_list(require_file(folder, LISTS[split]))
    timed = find_file(folder, TIMES, SUBFOLDERS)
    times = require_dict(load_captions(timed), timed, "the times") if timed else {}
    captions: CaptionsById = {}
    for name, sentences in require_dict(load_captions(path), path, "the captions").items():
        where = f"{path}, {name!r}"
        descriptions = require_list(sentences, where, "its captions")
        spans = require_list(times.get(name, [(None, None)] * len(descriptions)), where, "its times")
        if len(spans) != len(descriptions):
            raise DatasetError(f"{timed}, {name!r}: {len(spans)} times for {len(descriptions)} captions")
        captions.setdefault(str(name), [])
        for sentence, span in zip(descriptions, spans, strict=True):
            pair = require_list(span, f"{timed}, {name!r}", "a time")
            if len(pair) != 2:
                raise DatasetError(f"{timed}, {name!r}: a time has a start and an end")
            add_caption(captions, str(name), join_words(sentence, where), where, *pair)
    return build_split(
        "queryd", split, order, captions, path, missing=[] if timed else [missing_file(folder, TIMES)]
    )
