"""MSVD (YouTubeClips): 1,970 videos without sound, about 40 English captions each."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets.build import Captions, add, assemble
from wordreel.datasets.files import Wanted, find, known_split, read_list
from wordreel.datasets.text import cells, columns, lines, rows
from wordreel.datasets.tokens import read_tokens
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

PLACES = ("msvd_data",)
CAPTIONS = Wanted(
    "MSVD's captions",
    ("raw-captions.pkl", "AllVideoDescriptions.txt", "MSR Video Description Corpus.csv", "video_corpus.csv",
     "video_corpus.tsv"),
    "nothing of MSVD can be read",
)  # fmt: skip
LISTS = {
    split: Wanted(
        f"MSVD's {word} list", (f"{split}_list.txt",), "the captions have no split in them; use another split"
    )
    for split, word in (("train", "training"), ("val", "validation"), ("test", "test"))
}
SPLITS = tuple(LISTS)
FILES = (CAPTIONS, *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """One split; the published captions are lower case without punctuation in `raw-captions.pkl` only."""
    known_split("msvd", split, SPLITS)
    path = find(folder, CAPTIONS, PLACES)
    order = read_list(find(folder, LISTS[split], PLACES))
    return assemble("msvd", split, order, read_captions(path), path)


def read_captions(path: Path) -> Captions:
    """Clip (`youtube-id_start_end`) → captions, from any of the published forms."""
    if path.suffix == ".pkl":
        return read_tokens(path)
    return _corpus(path) if path.suffix in (".csv", ".tsv") else _descriptions(path)


def _descriptions(path: Path) -> Captions:
    captions: Captions = {}
    for number, line in lines(path):
        if line.startswith("#"):
            continue
        name, space, text = line.strip().partition(" ")
        if not space:
            raise DatasetError(f"{path}, line {number}: an id and a caption are expected, not {name[:60]!r}")
        add(captions, name, text, f"{path}, line {number}")
    return captions


def _corpus(path: Path) -> Captions:
    captions: Captions = {}
    found = rows(path, "\t" if path.suffix == ".tsv" else ",")
    for number, header in found:
        places = columns(
            path, number, header, [("videoid",), ("start",), ("end",), ("language",), ("description",)]
        )
        for line, row in found:
            video, start, end, language, text = cells(path, line, row, places)
            if language.strip().lower() == "english":
                add(captions, f"{video}_{start}_{end}", text, f"{path}, line {line}")
    return captions
