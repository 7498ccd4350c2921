"""MSVD (YouTubeClips): 1,970 silent videos with about 40 English captions each."""

from __future__ import annotations

from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFile, check_split, read_id_list, require_file
from wordreel.lab.datasets.caption_pickles import read_caption_pickle
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption, build_split
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import read_columns, read_lines

SUBFOLDERS = ("msvd_data",)
CAPTIONS = AnnotationFile(
    "MSVD's captions",
    ("raw-captions.pkl", "AllVideoDescriptions.txt", "MSR Video Description Corpus.csv", "video_corpus.csv",
     "video_corpus.tsv"),
    "nothing of MSVD can be read",
)  # fmt: skip
LISTS = {
    split: AnnotationFile(
        f"MSVD's {word} list", (f"{split}_list.txt",), "the captions have no split in them; use another split"
    )
    for split, word in (("train", "training"), ("val", "validation"), ("test", "test"))
}
SPLITS = tuple(LISTS)
FILES = (CAPTIONS, *LISTS.values())


def read(folder: Path, split: str) -> Split:
    """Read one split. Only `raw-captions.pkl` has the published captions: lower case, no punctuation."""
    check_split("msvd", split, SPLITS)
    path = require_file(folder, CAPTIONS, SUBFOLDERS)
    order = read_id_list(require_file(folder, LISTS[split], SUBFOLDERS))
    return build_split("msvd", split, order, read_captions(path), path)


def read_captions(path: Path) -> CaptionsById:
    """Clip (`youtube-id_start_end`) → captions, from any of the published files."""
    if path.suffix == ".pkl":
        return read_caption_pickle(path)
    return _corpus(path) if path.suffix in (".csv", ".tsv") else _descriptions(path)


def _descriptions(path: Path) -> CaptionsById:
    captions: CaptionsById = {}
    for number, line in read_lines(path):
        if line.startswith("#"):
            continue
        name, space, text = line.strip().partition(" ")
        if not space:
            raise DatasetError(f"{path}, line {number}: an id and a caption are expected, not {name[:60]!r}")
        add_caption(captions, name, text, f"{path}, line {number}")
    return captions


def _corpus(path: Path) -> CaptionsById:
    captions: CaptionsById = {}
    names = [("videoid",), ("start",), ("end",), ("language",), ("description",)]
    for line, cells in read_columns(path, names, "\t" if path.suffix == ".tsv" else ","):
        video, start, end, language, text = cells
        if language.strip().lower() == "english":
            add_caption(captions, f"{video}_{start}_{end}", text, f"{path}, line {line}")
    return captions
