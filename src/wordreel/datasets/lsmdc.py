"""LSMDC: short clips of films, one sentence each from the script or the audio description."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, assemble
from wordreel.datasets.files import Wanted, find, known_split
from wordreel.datasets.text import lines
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

PLACES = ("lsmdc_data",)
LISTS = {
    "train": Wanted("LSMDC's training clips", ("LSMDC16_annos_training.csv",), "val and test can be read"),
    "val": Wanted("LSMDC's validation clips", ("LSMDC16_annos_val.csv",), "train and test can be read"),
    "test": Wanted(
        "LSMDC's 1,000 public test clips",
        ("LSMDC16_challenge_1000_publictect.csv", "LSMDC16_challenge_1000_publictest.csv"),
        "train and val can be read",
    ),
}
SPLITS = tuple(LISTS)
FILES = tuple(LISTS.values())
COLUMNS = 6  # clip, start and end aligned, start and end extracted, sentence


def read(folder: Path, split: str) -> Split:
    """One split. Times in these files are of the film, and the clip is already cut: they are left out."""
    known_split("lsmdc", split, SPLITS)
    path = find(folder, LISTS[split], PLACES)
    captions: Captions = {}
    for number, line in lines(path):
        parts = line.split("\t")
        if len(parts) == COLUMNS - 1:
            parts.append("")  # a few published clips have no sentence
        if len(parts) != COLUMNS:
            raise DatasetError(
                f"{path}, line {number}: {len(parts)} columns; LSMDC has {COLUMNS}, separated by tabs"
            )
        add(captions, parts[0].strip(), parts[-1], f"{path}, line {number}")
    paths = {name: f"{name.rpartition('_')[0]}/{name}.avi" for name in captions}
    return assemble("lsmdc", split, captions, captions, path, paths)
