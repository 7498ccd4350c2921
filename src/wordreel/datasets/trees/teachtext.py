"""TeachText's tree: CE's, at `data/<DATASET>/high-quality/structured-symlinks`, and what teaches students.

teachers/*.pkl    id → {"vid_embds": {expert: [dim]}, "text_embds": {expert: one [dim] per caption}}
denoising_masks/denoise-*.pkl    id → a 0 or 1 per caption: which ones are fit for training (or at the root)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wordreel.datasets.trees.ce import EXPECTED, FOLDER, PickledTree, dataset_name, looks_pickled
from wordreel.datasets.trees.tables import SUFFIXES, Table
from wordreel.datasets.trees.values import as_rows
from wordreel.datasets.types import Missing
from wordreel.errors import DatasetError
from wordreel.types import Bool, Float32

HIGH_QUALITY = "high-quality"
MASKS = "denoising_masks"
NOT_HERE = ("i3d.i3d.0", "face", "ocr")  # the downloads of the better features leave these out


@dataclass(frozen=True)
class Lesson:
    """One teacher's embeddings of one item: `video[expert] [dim]` and `text[expert] [captions, dim]`."""

    video: dict[str, Float32]
    text: dict[str, Float32]


@dataclass
class TeachTextTree(PickledTree):
    kind: str = "teachtext"
    expected: tuple[str, ...] = tuple(expert for expert in EXPECTED if expert not in NOT_HERE)
    _extra: dict[str, Table] = field(default_factory=dict, repr=False)

    @property
    def teachers(self) -> Sequence[str]:
        """The names of the teachers' files, without their ending."""
        return tuple(
            sorted(path.stem for path in (self.root / "teachers").glob("*") if path.suffix in SUFFIXES)
        )

    @property
    def masks(self) -> Sequence[str]:
        """The names of the files that choose captions for training, without their ending."""
        places = [*self.root.glob("denoise*"), *(self.root / MASKS).glob("denoise*")]
        return tuple(sorted({path.stem for path in places if path.suffix in SUFFIXES}))

    @property
    def missing(self) -> Sequence[Missing]:
        found = list(super().missing)
        if not self.teachers:
            without = "everything but training a student from published teachers"
            found.append(Missing("teachers", self.root / "teachers", without))
        return tuple(found)

    def lesson(self, teacher: str, item: str) -> Lesson | None:
        """What a teacher made of an item; None if its file does not have it."""
        table = self._open(self.root / "teachers", teacher)
        if item not in table:
            return None
        value = table[item]
        try:
            video = {str(name): _vector(part) for name, part in value["vid_embds"].items()}
            text = {str(name): _rows(part) for name, part in value["text_embds"].items()}
        except (KeyError, TypeError, AttributeError, DatasetError) as error:
            raise DatasetError(f"{item} in {table.path} is no teacher's entry: {error!r}") from None
        return Lesson(video, text)

    def mask(self, name: str, item: str) -> Bool | None:
        """Which captions of an item are fit for training; None if the file does not have it."""
        beside = any(path.stem == name for path in (self.root / MASKS).glob("*"))
        table = self._open(self.root / MASKS if beside else self.root, name)
        if item not in table:
            return None
        return np.asarray(_vector(table[item]) != 0, bool)

    def _open(self, folder: Path, name: str) -> Table:
        key = f"{folder}/{name}"
        if key not in self._extra:
            paths = [path for path in folder.glob("*") if path.stem == name and path.suffix in SUFFIXES]
            if not paths:
                raise DatasetError(f"there is no {name!r} in {folder}")
            self._extra[key] = Table(paths[0], self.aliases)
        return self._extra[key]


def open_teachtext(folder: Path, dataset: str | None = None) -> TeachTextTree:
    """The tree at a dataset's folder, at its `high-quality`, or at the `structured-symlinks` in that."""
    for root in (folder / HIGH_QUALITY / FOLDER, folder / FOLDER, folder / HIGH_QUALITY, folder):
        if looks_pickled(root):
            return TeachTextTree(root, dataset or dataset_name(root))
    raise DatasetError(
        f"{folder} is not a TeachText tree: it has no {HIGH_QUALITY}/{FOLDER}/aggregated_… folders"
    )


def _vector(value: object) -> Float32:
    rows = _rows(value)
    if len(rows) != 1:
        raise DatasetError(f"{len(rows)} rows where one is expected")
    first: Float32 = rows[0]
    return first


def _rows(value: object) -> Float32:
    rows = None if isinstance(value, Mapping) else as_rows(value)
    if rows is None or rows.size == 0:
        raise DatasetError("no numbers where an embedding is expected")
    return np.asarray(rows, np.float32)
