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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.array_files import read_value
from wordreel.lab.datasets.trees.feature_files import PUBLISHED, FeatureFile, RowFile
from wordreel.lab.datasets.trees.split_lists import NO_CAPTIONS, SplitLists, pick_split
from wordreel.lab.datasets.trees.track_conversion import as_rows, as_track
from wordreel.lab.datasets.trees.tree import WITHOUT_EXPERT, FileTree
from wordreel.lab.datasets.types import Item, Missing, Split
from wordreel.types import Absent, Track

EXPERTS = ("audio", "face", "motion", "visual")  # the names of the published model
WORDS = "w2v"  # the name of the word features
MSRVTT = PUBLISHED["moee"]["MSRVTT"]
LSMDC = PUBLISHED["moee"]["LSMDC"]
NO_FACE = "no_face_ind_retrieval.npy"  # 1 where a test row has none


@dataclass
class MoEETree(FileTree):
    """MSR-VTT's features by id, or LSMDC's by row."""

    kind: ClassVar[str] = "moee"

    @property
    def experts(self) -> Sequence[str]:
        """The experts by the names of the published model."""
        return tuple(expert for expert in EXPERTS if self.open_files(expert))

    @property
    def missing(self) -> Sequence[Missing]:
        """Files of the dataset that are not here; captions never are."""
        if self.dataset == "MSRVTT":
            names = [(f"features of {expert}", MSRVTT[expert]) for expert in EXPERTS]
            names += [(f"the {part} list", f"{part}_list.txt") for part in ("train", "test")]
        else:
            names = [(f"{e} of {part}", LSMDC[part][e]) for part in LSMDC for e in EXPERTS]
        paths = [(what, self.root / name) for what, name in names]
        missing = [Missing(what, path, WITHOUT_EXPERT) for what, path in paths if not path.is_file()]
        return (*missing, Missing("raw captions", self.root, NO_CAPTIONS))

    @property
    def splits(self) -> Sequence[str]:
        """The names of the lists, or of the splits that have rows."""
        if self.dataset == "MSRVTT":
            return SplitLists(self.root, self.dataset).names
        return tuple(part for part, names in LSMDC.items() if (self.root / names["visual"]).is_file())

    def split(self, name: str) -> Split:
        """Return one split, without captions."""
        chosen = pick_split(name, self.splits)
        if self.dataset == "MSRVTT":
            items = SplitLists(self.root, self.dataset, read_captions=lambda item: ()).split(chosen).items
        else:
            items = tuple(Item(i) for i in RowFile(self.root / LSMDC[chosen]["visual"], chosen).ids)
        return Split(self.dataset, chosen, items, tuple(self.missing))

    @property
    def word_feature_names(self) -> Sequence[str]:
        """The one name of the word features."""
        return (WORDS,) if self.open_files(WORDS) else ()

    def open_word_files(self, name: str) -> list[FeatureFile | RowFile]:
        """Return the files of the word features."""
        return self.open_files(name)

    def open_files(self, expert: str) -> list[FeatureFile | RowFile]:
        """Return MSR-VTT's file, or LSMDC's of each split."""
        files: list[FeatureFile | RowFile] = [FeatureFile(self.root / MSRVTT.get(expert, ""))]
        if self.dataset != "MSRVTT":
            files = [RowFile(self.root / names.get(expert, ""), split) for split, names in LSMDC.items()]
        return [file for file in files if file.path.is_file()]

    def convert(self, expert: str, item: str, file: FeatureFile | RowFile) -> Track | Absent:
        """Return an item's features; a face of zeros is absent, and zeros after a sound are cut off."""
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
    """Return the datasets whose files are in a folder."""
    lsmdc = [name for names in LSMDC.values() for name in names.values()]
    known = {"MSRVTT": MSRVTT.values(), "LSMDC": lsmdc}
    return [name for name, files in known.items() if any((root / file).is_file() for file in files)]
