"""The files of Mixture of Embedding Experts, all in one folder (`data/data`).

    MSRVTT        {resnet,flow,audio,face}_features.pickle, w2v_MSRVTT.pickle: id → array
                  train_list.txt, test_list.txt
    LSMDC train   X_{resnet,flow,face}.npy, X_audio_train.npy, w2v_LSMDC.npy
    LSMDC test    {resnet152,flow,face}-retrieval.npy.tensor.npy, X_audio_retrieval.npy.tensor.npy,
                  w2v_LSMDC_retrieval.npy, no_face_ind_retrieval.npy

The rows of LSMDC have no ids: row 7 of the test files is the item `test-7`. A face of zeros is no face. There
are word features and no captions. Audio of the test rows is padded with rows of zeros, which are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.datasets.trees.ce import word_rows
from wordreel.datasets.trees.lists import Lists, all_ids, pick_split
from wordreel.datasets.trees.tables import Table, read_value
from wordreel.datasets.trees.values import as_rows, as_track
from wordreel.datasets.types import Item, Missing, Split
from wordreel.errors import DatasetError
from wordreel.types import Absent, Float32, Track

EXPERTS = ("audio", "face", "motion", "visual")  # the names of the published model
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
        "words": "w2v_LSMDC.npy",
    },
    "test": {
        "visual": "resnet152-retrieval.npy.tensor.npy",
        "motion": "flow-retrieval.npy.tensor.npy",
        "audio": "X_audio_retrieval.npy.tensor.npy",
        "face": "face-retrieval.npy.tensor.npy",
        "words": "w2v_LSMDC_retrieval.npy",
    },
}
NO_FACE = "no_face_ind_retrieval.npy"  # 1 where a test row has none
WITHOUT = "the other experts; models trained with this one see it as absent everywhere"
NO_CAPTIONS = "features and splits; text-to-video evaluation needs captions from elsewhere"


class _Rows:
    """A file of one value per item, in order; items are named after their split and row."""

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        self.split = split

    @cached_property
    def values(self) -> Any:
        found = read_value(self.path)
        if not isinstance(found, np.ndarray | list) or (isinstance(found, np.ndarray) and found.ndim == 0):
            raise DatasetError(f"{self.path} holds no rows of features")
        return found

    @property
    def ids(self) -> list[str]:
        return [f"{self.split}-{row}" for row in range(len(self.values))]

    def __contains__(self, item: str) -> bool:
        split, _, row = item.rpartition("-")
        return split == self.split and row.isdecimal() and int(row) < len(self.values)

    def __getitem__(self, item: str) -> Any:
        return self.values[int(item.rpartition("-")[2])]


_Part = Table | _Rows


@dataclass
class MoeeTree:
    root: Path
    dataset: str
    kind: str = "moee"
    _open: dict[str, list[_Part]] = field(default_factory=dict, repr=False)

    @property
    def experts(self) -> Sequence[str]:
        return tuple(expert for expert in EXPERTS if self._parts(expert))

    @property
    def missing(self) -> Sequence[Missing]:
        if self.dataset == "MSRVTT":
            names = [(f"features of {expert}", MSRVTT[expert]) for expert in EXPERTS]
            names += [(f"the {part} list", f"{part}_list.txt") for part in ("train", "test")]
        else:
            names = [(f"{e} of {part}", LSMDC[part][e]) for part in LSMDC for e in EXPERTS]
        found = [Missing(w, self.root / n, WITHOUT) for w, n in names if not (self.root / n).is_file()]
        return (*found, Missing("raw captions", self.root, NO_CAPTIONS))

    def ids(self, expert: str) -> Sequence[str]:
        return all_ids(part.ids for part in self._need(expert))

    def read(self, expert: str, item: str) -> Track | Absent:
        for part in self._need(expert):
            if item in part:
                try:
                    return self._track(expert, item, part)
                except DatasetError as error:
                    raise DatasetError(f"{item} in {part.path}: {error}") from None
        return Absent(f"not in {self._need(expert)[0].path.name}")

    def for_split(self, split: str) -> MoeeTree:
        return self

    def source(self, expert: str) -> str:
        paths = [part.path for part in self._need(expert)]
        return ", ".join(f"{path.name}, {path.stat().st_size} bytes" for path in paths)

    @property
    def splits(self) -> Sequence[str]:
        if self.dataset == "MSRVTT":
            return Lists(self.root, self.dataset).names
        return tuple(part for part, names in LSMDC.items() if (self.root / names["visual"]).is_file())

    def split(self, name: str) -> Split:
        chosen = pick_split(name, self.splits)
        if self.dataset == "MSRVTT":
            items = Lists(self.root, self.dataset, tell=lambda item: ()).split(chosen).items
        else:
            items = tuple(Item(i) for i in _Rows(self.root / LSMDC[chosen]["visual"], chosen).ids)
        return Split(self.dataset, chosen, items, tuple(self.missing))

    def words(self, item: str) -> list[Float32]:
        """word2vec features `[words, 300]` of each caption of an item; empty where the files have none."""
        for part in self._parts("words"):
            if item in part:
                value = part[item]
                return [word_rows(v, item) for v in (value if isinstance(value, list) else [value])]
        return []

    def _track(self, expert: str, item: str, part: _Part) -> Track | Absent:
        value = part[item]
        rows = as_rows(value)
        if expert == "face" and rows is not None and rows.size:
            blank = item in self._no_face
            if blank or not np.any(rows):
                return Absent(
                    "no face: a vector of zeros in the file" if not blank else f"no face by {NO_FACE}"
                )
        if expert == "audio" and part.path.name == LSMDC["test"]["audio"] and rows is not None and rows.size:
            told = np.flatnonzero(np.any(rows != 0, axis=1))
            value = rows[: told[-1] + 1] if len(told) else rows[:0]
        return as_track(value)

    @cached_property
    def _no_face(self) -> set[str]:
        path = self.root / NO_FACE
        if self.dataset == "MSRVTT" or not path.is_file():
            return set()
        marks = np.asarray(read_value(path)).ravel()
        return {f"test-{row}" for row in np.flatnonzero(marks)}

    def _need(self, expert: str) -> list[_Part]:
        parts = self._parts(expert)
        if not parts:
            raise DatasetError(
                f"{self.root} has no expert {expert!r}; it has {', '.join(self.experts) or 'none'}"
            )
        return parts

    def _parts(self, expert: str) -> list[_Part]:
        if expert not in self._open:
            parts: list[_Part] = []
            if self.dataset == "MSRVTT":
                parts = [Table(self.root / {**MSRVTT, "words": "w2v_MSRVTT.pickle"}.get(expert, ""))]
            else:
                parts = [_Rows(self.root / names.get(expert, ""), split) for split, names in LSMDC.items()]
            self._open[expert] = [part for part in parts if part.path.is_file()]
        return self._open[expert]


def open_moee(folder: Path, dataset: str | None = None) -> MoeeTree:
    """The files at a folder, or at `data` in it."""
    for root in (folder, folder / "data", folder / "data" / "data"):
        here = held(root)
        if dataset:
            here = [name for name in here if name.lower() == dataset.lower()]
        if len(here) > 1:
            raise DatasetError(f"{root} holds both {' and '.join(here)}; say which with --dataset")
        if here:
            return MoeeTree(root, here[0])
    raise DatasetError(f"{folder} has none of MoEE's files, such as {MSRVTT['visual']} or X_resnet.npy")


def held(root: Path) -> list[str]:
    """The datasets whose files are in a folder."""
    rows = [name for names in LSMDC.values() for name in names.values()]
    here = {"MSRVTT": MSRVTT.values(), "LSMDC": rows}
    return [name for name, files in here.items() if any((root / file).is_file() for file in files)]
