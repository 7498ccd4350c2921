"""VATEX: ten-second videos, ten English captions each. Two lists of 1,500 test videos are in use."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, as_dict, as_list, assemble, field, name
from wordreel.datasets.files import Wanted, find, known_split, look, read_list
from wordreel.datasets.text import read_json
from wordreel.datasets.types import Split

PLACES = ("vatex_data",)
TOGETHER = Wanted("the captions of all VATEX videos", ("vatex_data.json",), "the official files do as well")
OFFICIAL = {
    "official-train": Wanted(
        "VATEX's training captions", ("vatex_training_v1.0.json",), "vatex_data.json does"
    ),
    "official-val": Wanted(
        "VATEX's validation captions", ("vatex_validation_v1.0.json",), "vatex_data.json does"
    ),
    "official-test": Wanted(
        "VATEX's public test captions", ("vatex_public_test_english_v1.1.json",), "vatex_data.json does"
    ),
}
LISTS = {
    "train": Wanted("the training list", ("train_list.txt",), "official-train is in the official file"),
    "val": Wanted("the validation list of the HGR split", ("val_list.txt",), "the other splits can be read"),
    "test-hgr": Wanted("the test list of the HGR split", ("test_list.txt",), "the other splits can be read"),
    "test-random": Wanted(
        "the test list that CLIP2Video drew at random",
        ("test1k5_sec_list.txt",),
        "the other splits can be read",
    ),
    "teachtext-val": Wanted(
        "TeachText's validation list", ("val_list_split1.txt",), "the other splits can be read"
    ),
    "teachtext-test": Wanted(
        "TeachText's test list", ("val_list_split2.txt",), "the other splits can be read"
    ),
}
SPLITS = (*LISTS, *OFFICIAL)
FILES = (TOGETHER, *OFFICIAL.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """One split, English captions only."""
    known_split("vatex", split, SPLITS)
    if split in OFFICIAL:
        path = find(folder, OFFICIAL[split], PLACES)
        captions = _captions(path)
        return assemble("vatex", split, captions, captions, path)
    order = read_list(find(folder, LISTS[split], PLACES))
    together = look(folder, TOGETHER, PLACES)
    official = (look(folder, wanted, PLACES) for wanted in OFFICIAL.values())
    paths = [together] if together else [path for path in official if path]
    captions = {}
    for path in paths or [find(folder, TOGETHER, PLACES)]:
        captions.update(_captions(path))
    return assemble("vatex", split, order, captions, paths[0])


def _captions(path: Path) -> Captions:
    content = read_json(path)
    captions: Captions = {}
    entries = (
        content.items()
        if isinstance(content, dict)
        else [(name(entry, "videoID", path), entry) for entry in as_list(content, path, "the captions")]
    )
    for video, entry in entries:
        where = f"{path}, {video!r}"
        for text in as_list(field(as_dict(entry, where, "an entry"), "enCap", where), where, "'enCap'"):
            add(captions, video, text, where)
    return captions
