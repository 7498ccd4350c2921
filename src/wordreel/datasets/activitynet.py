"""ActivityNet Captions: long videos, each with some sentences that follow one another in time."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, as_dict, as_list, assemble, field
from wordreel.datasets.files import Wanted, find, known_split, look
from wordreel.datasets.text import read_json
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

PLACES = ("activitynet_data", "anet_captions")
CAPTIONS = {
    "train": Wanted("ActivityNet's training captions", ("train.json",), "val1 and val2 can be read"),
    "val1": Wanted("the first set of validation captions", ("val_1.json",), "train and val2 can be read"),
    "val2": Wanted("the second set of validation captions", ("val_2.json",), "train and val1 can be read"),
}
LISTS = {
    "train": Wanted("the list of training videos", ("train_ids.json",), "every captioned video is taken"),
    "val1": Wanted("the list of validation videos", ("val_ids.json",), "every captioned video is taken"),
}
SPLITS = tuple(CAPTIONS)
FILES = (*CAPTIONS.values(), *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """One split: each sentence with its span. Ids keep the `v_` of the annotations."""
    known_split("activitynet", split, SPLITS)
    path = find(folder, CAPTIONS[split], PLACES)
    captions: Captions = {}
    for name, entry in as_dict(read_json(path), path, "the captions").items():
        where = f"{path}, {name!r}"
        sentences = as_list(field(entry, "sentences", where), where, "'sentences'")
        times = as_list(field(entry, "timestamps", where), where, "'timestamps'")
        if len(times) != len(sentences):
            raise DatasetError(f"{where}: {len(sentences)} sentences and {len(times)} timestamps")
        captions.setdefault(name, [])
        for sentence, time in zip(sentences, times, strict=True):
            pair = as_list(time, where, "a timestamp")
            if len(pair) != 2:
                raise DatasetError(f"{where}: a timestamp has a start and an end, not {len(pair)} numbers")
            add(captions, name, sentence, where, *pair)
    listed = look(folder, LISTS[split], PLACES) if split in LISTS else None
    order = as_list(read_json(listed), listed, "the ids") if listed else list(captions)
    return assemble("activitynet", split, map(str, order), captions, path)
