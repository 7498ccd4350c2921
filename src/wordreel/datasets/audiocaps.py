"""AudioCaps: ten seconds of YouTube sound each, one caption for training and five for testing."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, assemble
from wordreel.datasets.files import Wanted, find, known_split, look, missing, read_list
from wordreel.datasets.text import cells, columns, rows
from wordreel.datasets.types import Split

PLACES = ("dataset",)
ID = 11  # letters of a YouTube id
CAPTIONS = {
    split: Wanted(f"AudioCaps' {split} captions", (f"{split}.csv",), "the other splits can be read")
    for split in ("train", "val", "test")
}
LISTS = {
    "train": Wanted("the training list of text-audio retrieval", ("train_list.txt",), "all captioned clips"),
    "val": Wanted(
        "the validation list of text-audio retrieval", ("filtered_val_list.txt",), "all captioned clips"
    ),
    "test": Wanted(
        "the test list of text-audio retrieval",
        ("final_filtered_test_list.txt",),
        "all captioned clips, which are more than the list has: the figures are not comparable with its",
    ),
}
SPLITS = tuple(CAPTIONS)
FILES = (*CAPTIONS.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """One split; an id is the clip's YouTube id."""
    known_split("audiocaps", split, SPLITS)
    path = find(folder, CAPTIONS[split], PLACES)
    captions: Captions = {}
    found = rows(path)
    for number, header in found:
        places = columns(path, number, header, [("youtube_id",), ("caption",)])
        for line, row in found:
            name, text = cells(path, line, row, places)
            add(captions, name.strip(), text, f"{path}, line {line}")
    listed = look(folder, LISTS[split], PLACES)
    if listed is None:
        return assemble("audiocaps", split, captions, captions, path, missing=[missing(folder, LISTS[split])])
    order = [name if name in captions else name[:ID] for name in read_list(listed)]
    return assemble("audiocaps", split, order, captions, path)
