"""QuerYD: YouTube videos with audio descriptions made for people who cannot see them, transcribed."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, as_dict, as_list, assemble
from wordreel.datasets.files import Wanted, find, known_split, look, missing, read_list
from wordreel.datasets.tokens import joined, load
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

PLACES = (
    "structured-symlinks/structured-symlinks",
    "high-quality/structured-symlinks/structured-symlinks",
)
STEMS = ("combined_filtered", "combined_filtered-v2", "combined_filtered-v1")
CAPTIONS = Wanted(
    "QuerYD's transcribed descriptions",
    (*(f"raw_captions_{stem}.pkl" for stem in STEMS), "raw_captions_combined_filtered.json"),
    "nothing of QuerYD can be read",
)
TIMES = Wanted(
    "when each description is spoken",
    (*(f"times_captions_{stem}.pkl" for stem in STEMS), "times_captions_combined_filtered.json"),
    "retrieval of whole videos, which needs no times",
)
LISTS = {
    split: Wanted(f"QuerYD's {split} list", (f"{split}_list.txt",), "the other splits can be read")
    for split in ("train", "val", "test")
}
SPLITS = tuple(LISTS)
FILES = (CAPTIONS, TIMES, *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """One split: each description by itself, with its span where the file of times is there."""
    known_split("queryd", split, SPLITS)
    path = find(folder, CAPTIONS, PLACES)
    order = read_list(find(folder, LISTS[split]))
    timed = look(folder, TIMES, PLACES)
    times = as_dict(load(timed), timed, "the times") if timed else {}
    captions: Captions = {}
    for name, sentences in as_dict(load(path), path, "the captions").items():
        where = f"{path}, {name!r}"
        said = as_list(sentences, where, "its captions")
        spans = as_list(times.get(name, [(None, None)] * len(said)), where, "its times")
        if len(spans) != len(said):
            raise DatasetError(f"{timed}, {name!r}: {len(spans)} times for {len(said)} captions")
        captions.setdefault(str(name), [])
        for sentence, span in zip(said, spans, strict=True):
            pair = as_list(span, f"{timed}, {name!r}", "a time")
            if len(pair) != 2:
                raise DatasetError(f"{timed}, {name!r}: a time has a start and an end")
            add(captions, str(name), joined(sentence, where), where, *pair)
    return assemble("queryd", split, order, captions, path, missing=[] if timed else [missing(folder, TIMES)])
