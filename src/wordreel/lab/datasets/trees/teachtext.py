"""TeachText's feature tree: CE's at `data/<DATASET>/high-quality/structured-symlinks`, and teachers.

teachers/*.pkl    id → {"vid_embds": {expert: [dim]}, "text_embds": {expert: one [dim] per caption}}
denoising_masks/denoise-*.pkl    id → 0 or 1 per caption: 1 where it is fit for training (or at the root)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees.ce import EXPECTED, FOLDER, PickledTree, dataset_from_path, is_pickled_tree
from wordreel.lab.datasets.trees.feature_files import SUFFIXES, FeatureFile, RowFile
from wordreel.lab.datasets.trees.track_conversion import as_rows
from wordreel.lab.datasets.types import Missing
from wordreel.types import Bool, Float32

HIGH_QUALITY = "high-quality"
MASKS = "denoising_masks"
NOT_RELEASED = ("i3d.i3d.0", "face", "ocr")  # the high-quality downloads lack these


@dataclass(frozen=True)
class TeacherEmbeddings:
    """One teacher's embeddings of one item: `video[expert] [dim]` and `text[expert] [captions, dim]`."""

    video: dict[str, Float32]
    text: dict[str, Float32]


@dataclass
class TeachTextTree(PickledTree):
    """CE's tree with the features, teachers and caption masks of TeachText."""

    kind: ClassVar[str] = "teachtext"
    expected: ClassVar[Sequence[str]] = tuple(expert for expert in EXPECTED if expert not in NOT_RELEASED)

    @property
    def teachers(self) -> Sequence[str]:
        """The names of the teachers' files, without suffix."""
        return tuple(sorted(self._extra_files("teachers")))

    @property
    def missing(self) -> Sequence[Missing]:
        missing = list(super().missing)
        if not self.teachers:
            without = "everything but training a student from published teachers"
            missing.append(Missing("teachers", self.root / "teachers", without))
        return tuple(missing)

    def teacher_embeddings(self, teacher: str, item: str) -> TeacherEmbeddings | None:
        """Return a teacher's embeddings of an item; None if its file does not have the item."""
        file = self._open("teachers", teacher)
        if item not in file:
            return None
        value = file[item]
        try:
            video = {str(name): _vector(part) for name, part in value["vid_embds"].items()}
            text = {str(name): _rows(part) for name, part in value["text_embds"].items()}
        except (KeyError, TypeError, AttributeError, DatasetError) as error:
            raise DatasetError(f"{item} in {file.path} is no teacher's entry: {error!r}") from None
        return TeacherEmbeddings(video, text)

    def caption_mask(self, name: str, item: str) -> Bool | None:
        """Return which captions of an item are fit for training.

        None if the file does not have the item.
        """
        file = self._open(MASKS if name in self._extra_files(MASKS) else "", name)
        if item not in file:
            return None
        return np.asarray(_vector(file[item]) != 0, bool)

    def _extra_files(self, folder: str) -> dict[str, Path]:
        files = (self.root / folder).glob("*")
        return {path.stem: path for path in files if path.suffix in SUFFIXES}

    def _open(self, folder: str, name: str) -> FeatureFile | RowFile:
        key = f"{folder}/{name}"
        if key not in self._opened:
            path = self._extra_files(folder).get(name)
            if path is None:
                raise DatasetError(f"there is no {name!r} in {self.root / folder}")
            self._opened[key] = [FeatureFile(path, self.aliases)]
        return self._opened[key][0]


def open_teachtext(folder: Path, dataset: str | None = None) -> TeachTextTree:
    """Open the tree at a dataset's folder, at its `high-quality`, or at the `structured-symlinks` in that."""
    for root in (folder / HIGH_QUALITY / FOLDER, folder / FOLDER, folder / HIGH_QUALITY, folder):
        if is_pickled_tree(root):
            return TeachTextTree(root, dataset or dataset_from_path(root))
    raise DatasetError(
        f"{folder} is not a TeachText tree: it has no {HIGH_QUALITY}/{FOLDER}/aggregated_… folders"
    )


def _vector(value: object) -> Float32:
    rows = _rows(value)
    if len(rows) != 1:
        raise DatasetError(f"{len(rows)} rows instead of one")
    first: Float32 = rows[0]
    return first


def _rows(value: object) -> Float32:
    rows = None if isinstance(value, Mapping) else as_rows(value)
    if rows is None or rows.size == 0:
        raise DatasetError("an embedding without numbers")
    return np.asarray(rows, np.float32)
