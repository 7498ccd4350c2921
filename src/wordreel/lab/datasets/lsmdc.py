"""LSMDC: short film clips with one sentence each, from the script or the audio description."""

from __future__ import annotations

from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFile, check_split, require_file
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_lines

SUBFOLDERS = ("lsmdc_data",)
LISTS = {
    "train": AnnotationFile(
        "LSMDC's training clips", ("LSMDC16_annos_training.csv",), "val and test can be read"
    ),
    "val": AnnotationFile(
        "LSMDC's validation clips", ("LSMDC16_annos_val.csv",), "train and test can be read"
    ),
    "test": AnnotationFile(
        "LSMDC's 1,000 public test clips",
        ("LSMDC16_challenge_1000_publictect.csv", "LSMDC16_challenge_1000_publictest.csv"),
        "train and val can be read",
    ),
}
SPLITS = tuple(LISTS)
FILES = tuple(LISTS.values())
COLUMNS = 6  # clip, start and end aligned, start and end extracted, sentence


def read(folder: Path, split: str) -> Split:
    """Read one split. The files' times are dropped: they are of the film, and the clips are already cut."""
    check_split("lsmdc", split, SPLITS)
    path = require_file(folder, LISTS[split], SUBFOLDERS)
    captions: CaptionsById = {}
    for number, line in read_lines(path):
        parts = line.split("\t")
        if len(parts) == COLUMNS - 1:
            parts.append("")  # a few published clips have no sentence
        if len(parts) != COLUMNS:
            raise DatasetError(
                f"{path}, line {number}: {len(parts)} columns; LSMDC has {COLUMNS}, separated by tabs"
            )
        add_caption(captions, parts[0].strip(), parts[-1], f"{path}, line {number}")
    paths = {name: f"{name.rpartition('_')[0]}/{name}.avi" for name in captions}
    return build_split("lsmdc", split, captions, captions, path, paths)
