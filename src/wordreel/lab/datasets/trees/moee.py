"""The feature files of Mixture of Embedding Experts (MoEE), all in one folder (`data/data`).

    MSRVTT        {resnet,flow,audio,face}_features.pickle, w2v_MSRVTT.pickle: id → array
                  train_list.txt, test_list.txt
    LSMDC train   X_{resnet,flow,face}.npy, X_audio_train.npy, w2v_LSMDC.npy
    LSMDC test    {resnet152,flow,face}-retrieval.npy.tensor.npy, X_audio_retrieval.npy.tensor.npy,
                  w2v_LSMDC_retrieval.npy, no_face_ind_retrieval.npy

The rows of LSMDC have no ids: row 7 of the test files is the item `test-7`. A face of zeros is absent. There
are word features ("w2v") but no captions. Test audio is padded with rows of zeros, which are cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.trees.ce import as_word_rows
from wordreel.lab.datasets.trees.feature_files import FeatureFile, read_value
from wordreel.lab.datasets.trees.split_lists import SplitLists, pick_split, unique_ids
from wordreel.lab.datasets.trees.track_conversion import as_rows, as_track
from wordreel.lab.datasets.types import Item, Missing, Split
from wordreel.types import Absent, Float32, Track

EXPERTS = ("audio", "face", "motion", "visual")  # the names of the published model
WORDS = "w2v"  # the name of the word features
MSRVTT_WORDS = "w2v_MSRVTT.pickle"
MSRVTT = {
    "visual": "resnet_features.pickle",
    "motion": "flow_features.pickle",
    "audio": "audio_features.pickle",
    "face": "face_features.pickle",
}
LSMDC = {
    "train": {
        "visual": "X_resnet.npy",
        "motion": "X_flow.npy",
        "audio": "X_audio_train.npy",
        "face": "X_face.npy",
        WORDS: "w2v_LSMDC.npy",
    },
    "test": {
        "visual": "resnet152-retrieval.npy.tensor.npy",
        "motion": "flow-retrieval.npy.tensor.npy",
        "audio": "X_audio_retrieval.npy.tensor.npy",
        "face": "face-retrieval.npy.tensor.npy",
        WORDS: "w2v_LSMDC_retrieval.npy",
    },
}
NO_FACE = "no_face_ind_retrieval.npy"  # 1 where a test row has none
WITHOUT = "the other experts; models trained with this one see it as absent everywhere"
NO_CAPTIONS = "features and splits; text-to-video evaluation needs captions from elsewhere"


class RowFile:
    """A file with one value per item, in order; an item's id is its split and row: `test-7`."""

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        self.split = split

    @cached_property
    def values(self) -> Any:
        values = read_value(self.path)
        if not isinstance(values, np.ndarray | list) or (isinstance(values, np.ndarray) and values.ndim == 0):
            raise DatasetError(f"{self.path} holds no rows of features")
        return values

    @property
    def ids(self) -> list[str]:
        return [f"{self.split}-{row}" for row in range(len(self.values))]

    def __contains__(self, item: str) -> bool:
        split, _, row = item.rpartition("-")
        return split == self.split and row.isdecimal() and int(row) < len(self.values)

    def __getitem__(self, item: str) -> Any:
        return self.values[int(item.rpartition("-")[2])]


@dataclass
class MoEETree:
    """MSR-VTT's features by id, or LSMDC's by row."""

    root: Path
    dataset: str
    kind: str = "moee"
    _open: dict[str, list[FeatureFile | RowFile]] = field(default_factory=dict, repr=False)

    @property
    def experts(self) -> Sequence[str]:
        return tuple(expert for expert in EXPERTS if self._files(expert))

    @property
    def missing(self) -> Sequence[Missing]:
        if self.dataset == "MSRVTT":
            names = [(f"features of {expert}", MSRVTT[expert]) for expert in EXPERTS]
            names += [(f"the {part} list", f"{part}_list.txt") for part in ("train", "test")]
        else:
            names = [(f"{e} of {part}", LSMDC[part][e]) for part in LSMDC for e in EXPERTS]
        missing = [Missing(w, self.root / n, WITHOUT) for w, n in names if not (self.root / n).is_file()]
        return (*missing, Missing("raw captions", self.root, NO_CAPTIONS))

    def ids(self, expert: str) -> Sequence[str]:
        return unique_ids(file.ids for file in self._required_files(expert))

    def read(self, expert: str, item: str) -> Track | Absent:
        files = self._required_files(expert)
        for file in files:
            if item in file:
                try:
                    return self._track(expert, item, file)
                except DatasetError as error:
                    raise DatasetError(f"{item} in {file.path}: {error.message}", error.next_step) from None
        return Absent(f"not in {files[0].path.name}")

    def for_split(self, split: str) -> MoEETree:
        return self

    def source(self, expert: str) -> str:
        paths = [file.path for file in self._required_files(expert)]
        return ", ".join(f"{path.name}, {path.stat().st_size} bytes" for path in paths)

    @property
    def splits(self) -> Sequence[str]:
        if self.dataset == "MSRVTT":
            return SplitLists(self.root, self.dataset).names
        return tuple(part for part, names in LSMDC.items() if (self.root / names["visual"]).is_file())

    def split(self, name: str) -> Split:
        chosen = pick_split(name, self.splits)
        if self.dataset == "MSRVTT":
            items = SplitLists(self.root, self.dataset, read_captions=lambda item: ()).split(chosen).items
        else:
            items = tuple(Item(i) for i in RowFile(self.root / LSMDC[chosen]["visual"], chosen).ids)
        return Split(self.dataset, chosen, items, tuple(self.missing))

    def caption_index(self, split: str) -> dict[str, int]:
        return {}

    @property
    def word_feature_names(self) -> Sequence[str]:
        return (WORDS,) if self._files(WORDS) else ()

    def word_features(self, name: str, item: str) -> list[Float32]:
        if name not in self.word_feature_names:
            known = ", ".join(self.word_feature_names) or "none"
            raise DatasetError(f"{self.root} has no word features {name!r}; it has {known}")
        for file in self._files(WORDS):
            if item in file:
                value = file[item]
                return [as_word_rows(v, item) for v in (value if isinstance(value, list) else [value])]
        return []

    def _track(self, expert: str, item: str, file: FeatureFile | RowFile) -> Track | Absent:
        value = file[item]
        rows = as_rows(value)
        if expert == "face" and rows is not None and rows.size:
            if item in self._no_face:
                return Absent(f"no face by {NO_FACE}")
            if not np.any(rows):
                return Absent("no face: a vector of zeros in the file")
        if expert == "audio" and file.path.name == LSMDC["test"]["audio"] and rows is not None and rows.size:
            nonzero = np.flatnonzero(np.any(rows != 0, axis=1))
            value = rows[: nonzero[-1] + 1] if len(nonzero) else rows[:0]
        return as_track(value)

    @cached_property
    def _no_face(self) -> set[str]:
        path = self.root / NO_FACE
        if self.dataset == "MSRVTT" or not path.is_file():
            return set()
        marks = np.asarray(read_value(path)).ravel()
        return {f"test-{row}" for row in np.flatnonzero(marks)}

    def _required_files(self, expert: str) -> list[FeatureFile | RowFile]:
        files = self._files(expert)
        if not files:
            raise DatasetError(
                f"{self.root} has no expert {expert!r}; it has {', '.join(self.experts) or 'none'}"
            )
        return files

    def _files(self, expert: str) -> list[FeatureFile | RowFile]:
        if expert not in self._open:
            files: list[FeatureFile | RowFile] = []
            if self.dataset == "MSRVTT":
                files = [FeatureFile(self.root / {**MSRVTT, WORDS: MSRVTT_WORDS}.get(expert, ""))]
            else:
                files = [RowFile(self.root / names.get(expert, ""), split) for split, names in LSMDC.items()]
            self._open[expert] = [file for file in files if file.path.is_file()]
        return self._open[expert]


def open_moee(folder: Path, dataset: str | None = None) -> MoEETree:
    """Open the files in a folder, or in its `data` or `data/data`."""
    for root in (folder, folder / "data", folder / "data" / "data"):
        names = datasets_in(root)
        if dataset:
            names = [name for name in names if name.lower() == dataset.lower()]
        if len(names) > 1:
            raise DatasetError(
                f"{root} holds both {' and '.join(names)}", NextStep("choose one with --dataset")
            )
        if names:
            return MoEETree(root, names[0])
    raise DatasetError(f"{folder} has none of MoEE's files, such as {MSRVTT['visual']} or X_resnet.npy")


def datasets_in(root: Path) -> list[str]:
    """The datasets whose files are in a folder."""
    lsmdc = [name for names in LSMDC.values() for name in names.values()]
    known = {"MSRVTT": MSRVTT.values(), "LSMDC": lsmdc}
    return [name for name, files in known.items() if any((root / file).is_file() for file in files)]
