"""The Multi-modal Transformer's tree: one HDF5 file per video.

    data/<DATASET>/vid_feat_files/mult_h5/<v>/<i>/<d>/<vid…>.h5    (folders: the id's first characters)
        features.{expert} [n, dim]    features_t.{expert} [n, 2] seconds
        raw_captions.{i} [words]      raw_captions_t.{i} [words, 2] seconds (transcripts)
    data/<DATASET>/symlinked-feats/*_list*.txt, jsfusion_val_caption_idx.pkl

Times follow the released code: s3d and vggish use the stored times, or one row per second where none are
stored; scene has one row per second, rgb one every 0.2 s; all others are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.datasets.trees.ce import dataset_name
from wordreel.datasets.trees.hdf5 import array, child, opened
from wordreel.datasets.trees.lists import Lists, sentences
from wordreel.datasets.trees.values import Array, as_track, steps
from wordreel.datasets.types import Caption, Missing, Split
from wordreel.errors import DatasetError
from wordreel.types import Absent, Track

FILES = Path("vid_feat_files") / "mult_h5"
LISTS = "symlinked-feats"
KNOWN = ("s3d", "vggish", "face", "rgb", "speech", "ocr", "scene")  # what MMT is trained with
TIMED = ("s3d", "vggish")
SECONDS_PER_ROW = {"rgb": 0.2, "scene": 1.0, "s3d": 1.0, "vggish": 1.0}
SAMPLE = 64  # files looked into for the names of experts
MOST_CAPTIONS = 10_000


@dataclass
class MmtTree:
    root: Path  # the folder of .h5 files
    dataset: str
    lists_folder: Path
    kind: str = "mmt"

    @cached_property
    def experts(self) -> Sequence[str]:
        """The experts of some 64 files spread over the tree; those of other files can be read too."""
        paths = sorted(self.root.glob("*/*/*/*.h5"))
        names: set[str] = set()
        for path in paths[:: max(1, len(paths) // SAMPLE)]:
            try:
                with opened(path) as file:
                    names |= {key.partition(".")[2] for key in file if key.startswith("features.")}
            except DatasetError as error:
                if "pip install" in str(error):
                    raise
        return tuple(sorted(names))

    @cached_property
    def _items(self) -> tuple[str, ...]:
        return tuple(path.stem for path in sorted(self.root.glob("*/*/*/*.h5")))

    @property
    def missing(self) -> Sequence[Missing]:
        found = [
            Missing(
                f"features of {expert}",
                self.root / "*/*/*" / f"*.h5:features.{expert}",
                "the other experts; models trained with this one see it as absent everywhere",
            )
            # ActivityNet and HowTo100M come with two.
            for expert in (TIMED if set(self.experts) == set(TIMED) else KNOWN)
            if expert not in self.experts
        ]
        return (*found, *self._lists.missing)

    def ids(self, expert: str) -> Sequence[str]:
        """Every video: each has a file, which says whether the expert had anything to say."""
        return self._items

    def read(self, expert: str, item: str) -> Track | Absent:
        path = self._path(item)
        if not path.is_file():
            return Absent("no .h5 file")
        with opened(path) as file:
            if f"features.{expert}" not in file:
                return Absent("not in the .h5 file")
            values = array(child(file, f"features.{expert}"))
            return as_track(values, self._times(file, expert, values))

    def for_split(self, split: str) -> MmtTree:
        return self

    def source(self, expert: str) -> str:
        return f"features.{expert}"

    @cached_property
    def _lists(self) -> Lists:
        return Lists(self.lists_folder, self.dataset, tell=self._told)

    def _told(self, item: str) -> tuple[Caption, ...]:
        """Captions for a split: one damaged file does not keep the others from being read."""
        try:
            return self.captions(item)
        except DatasetError as error:
            if "pip install" in str(error):
                raise
            return ()

    @property
    def splits(self) -> Sequence[str]:
        return self._lists.names

    def split(self, name: str) -> Split:
        return self._lists.split(name)

    def captions(self, item: str) -> tuple[Caption, ...]:
        """The sentences in a video's file, with their spans where the words have times."""
        path = self._path(item)
        if not path.is_file():
            return ()
        told = []
        with opened(path) as file:
            for number in range(min(len(file), MOST_CAPTIONS)):
                if f"raw_captions.{number}" not in file:
                    break
                words = array(child(file, f"raw_captions.{number}"))
                key = f"raw_captions_t.{number}"
                times = array(child(file, key)) if key in file else np.zeros(0)
                start, end = _span(times)
                clock = None if start is None else times.astype(np.float32)
                text = " ".join(sentences(words)) if words.size else ""
                told.append(Caption(text, start, end, clock))
        return tuple(told)

    def _times(self, file: Any, expert: str, values: Array) -> Array | None:
        key = f"features_t.{expert}"
        if expert in TIMED and key in file:
            return array(child(file, key))
        if expert in SECONDS_PER_ROW and values.ndim:
            return steps(len(values), SECONDS_PER_ROW[expert])
        return None

    def _path(self, item: str) -> Path:
        if len(item) < 3 or any(part in ("", ".", "..") for part in item.split("/")) or "/" in item[:3]:
            return self.root / "no such item"
        return self.root / item[0] / item[1] / item[2] / f"{item}.h5"


def open_mmt(folder: Path, dataset: str | None = None) -> MmtTree:
    """The tree at a dataset's folder, or at its `mult_h5`."""
    root = folder / FILES if (folder / FILES).is_dir() else folder
    if not looks_mmt(root):
        raise DatasetError(f"{folder} is not an MMT tree: it has no {FILES}/a/b/c/abc….h5 files")
    lists = root
    for above in (folder, *root.resolve().parents[:2]):
        if (above / LISTS).is_dir():
            lists = above / LISTS
            break
    return MmtTree(root, dataset or dataset_name(root), lists)


def looks_mmt(root: Path) -> bool:
    return next(root.glob("?/?/?/*.h5"), None) is not None


def _span(times: Array) -> tuple[float, float] | tuple[None, None]:
    if times.ndim != 2 or times.shape[1] != 2 or times.dtype.kind not in "fiu" or not times.size:
        return None, None
    start, end = float(times[:, 0].min()), float(times[:, 1].max())
    return (start, end) if np.isfinite([start, end]).all() and 0 <= start < end else (None, None)
