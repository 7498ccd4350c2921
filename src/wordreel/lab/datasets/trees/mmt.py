"""The feature tree of the Multi-modal Transformer (MMT): one HDF5 file per video.

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
from typing import Any, ClassVar

import numpy as np

from wordreel.errors import DatasetError
from wordreel.lab.datasets.caption_pickles import parse_captions
from wordreel.lab.datasets.hdf5 import H5pyMissing, get_child, open_hdf5, read_array
from wordreel.lab.datasets.trees.ce import dataset_from_path
from wordreel.lab.datasets.trees.split_lists import SplitLists
from wordreel.lab.datasets.trees.track_conversion import as_track, regular_times
from wordreel.lab.datasets.trees.tree import WITHOUT_EXPERT, Tree
from wordreel.lab.datasets.types import Caption, Missing, Split
from wordreel.types import Absent, Array, Track

H5_FOLDER = Path("vid_feat_files") / "mult_h5"
LISTS_FOLDER = "symlinked-feats"
EXPERTS = ("s3d", "vggish", "face", "rgb", "speech", "ocr", "scene")  # what MMT is trained with
TIMED = ("s3d", "vggish")
SECONDS_PER_ROW = {"rgb": 0.2, "scene": 1.0, "s3d": 1.0, "vggish": 1.0}
SAMPLED_FILES = 64  # opened to list the experts
MAX_CAPTIONS = 10_000


@dataclass
class MMTTree(Tree):
    """Features, times and captions in one HDF5 file per video; `root` is the folder of these files."""

    kind: ClassVar[str] = "mmt"

    lists_folder: Path

    @cached_property
    def experts(self) -> Sequence[str]:
        """The experts in 64 files spread over the tree; rarer ones can still be read."""
        names: set[str] = set()
        for item in self._items[:: max(1, len(self._items) // SAMPLED_FILES)]:
            try:
                with open_hdf5(self._path(item)) as file:
                    names |= {key.partition(".")[2] for key in file if key.startswith("features.")}
            except H5pyMissing:
                raise
            except DatasetError:  # one damaged file; the import reports it
                continue
        return tuple(sorted(names))

    @cached_property
    def _items(self) -> tuple[str, ...]:
        return tuple(path.stem for path in sorted(self.root.glob("*/*/*/*.h5")))

    @property
    def missing(self) -> Sequence[Missing]:
        missing = [
            Missing(
                f"features of {expert}",
                self.root / "*/*/*" / f"*.h5:features.{expert}",
                WITHOUT_EXPERT,
            )
            # ActivityNet and HowTo100M come with two.
            for expert in (TIMED if set(self.experts) == set(TIMED) else EXPERTS)
            if expert not in self.experts
        ]
        return (*missing, *self._lists.missing)

    def ids(self, expert: str) -> Sequence[str]:
        """Return every video: each has a file, in which the expert may be absent."""
        return self._items

    def read(self, expert: str, item: str) -> Track | Absent:
        path = self._path(item)
        if not path.is_file():
            return Absent("no .h5 file")
        with open_hdf5(path) as file:
            if f"features.{expert}" not in file:
                return Absent("not in the .h5 file")
            values = read_array(get_child(file, f"features.{expert}"))
            return as_track(values, self._times(file, expert, values))

    def source(self, expert: str) -> str:
        return f"features.{expert}"

    @cached_property
    def _lists(self) -> SplitLists:
        return SplitLists(self.lists_folder, self.dataset, read_captions=self._readable_captions)

    def _readable_captions(self, item: str) -> tuple[Caption, ...]:
        """Captions for a split; none for a damaged file, so that the others can be read."""
        try:
            return self.captions(item)
        except H5pyMissing:
            raise
        except DatasetError:
            return ()

    @property
    def splits(self) -> Sequence[str]:
        return self._lists.names

    def split(self, name: str) -> Split:
        return self._lists.split(name)

    def caption_index(self, split: str) -> dict[str, int]:
        return self._lists.caption_index(split)

    def captions(self, item: str) -> tuple[Caption, ...]:
        """Return the captions in a video's file, with their spans if the words have times."""
        path = self._path(item)
        if not path.is_file():
            return ()
        captions = []
        with open_hdf5(path) as file:
            for number in range(min(len(file), MAX_CAPTIONS)):
                if f"raw_captions.{number}" not in file:
                    break
                words = read_array(get_child(file, f"raw_captions.{number}"))
                key = f"raw_captions_t.{number}"
                times = read_array(get_child(file, key)) if key in file else np.zeros(0)
                start, end = _span(times)
                word_times = None if start is None else times.astype(np.float32)
                text = " ".join(parse_captions(words)) if words.size else ""
                captions.append(Caption(text, start, end, word_times))
        return tuple(captions)

    def _times(self, file: Any, expert: str, values: Array) -> Array | None:
        key = f"features_t.{expert}"
        if expert in TIMED and key in file:
            return read_array(get_child(file, key))
        if expert in SECONDS_PER_ROW and values.ndim:
            return regular_times(len(values), SECONDS_PER_ROW[expert])
        return None

    def _path(self, item: str) -> Path:
        if len(item) < 3 or any(part in ("", ".", "..") for part in item.split("/")) or "/" in item[:3]:
            return self.root / "no such item"
        return self.root / item[0] / item[1] / item[2] / f"{item}.h5"


def open_mmt(folder: Path, dataset: str | None = None) -> MMTTree:
    """Open the tree at a dataset's folder, or at its `mult_h5`."""
    root = folder / H5_FOLDER if (folder / H5_FOLDER).is_dir() else folder
    if not is_mmt_tree(root):
        raise DatasetError(f"{folder} is not an MMT tree: it has no {H5_FOLDER}/a/b/c/abc….h5 files")
    lists = root
    for parent in (folder, *root.resolve().parents[:2]):
        if (parent / LISTS_FOLDER).is_dir():
            lists = parent / LISTS_FOLDER
            break
    return MMTTree(root, dataset or dataset_from_path(root), lists)


def is_mmt_tree(root: Path) -> bool:
    """Return whether a folder holds MMT's HDF5 files."""
    return next(root.glob("?/?/?/*.h5"), None) is not None


def _span(times: Array) -> tuple[float, float] | tuple[None, None]:
    if times.ndim != 2 or times.shape[1] != 2 or times.dtype.kind not in "fiu" or not times.size:
        return None, None
    start, end = float(times[:, 0].min()), float(times[:, 1].max())
    return (start, end) if np.isfinite([start, end]).all() and 0 <= start < end else (None, None)
